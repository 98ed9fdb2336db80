"""Modules of TensorFlow Hub: both formats are read, TensorFlow 2's is written.

No graph of a module is loaded or run, only the numbers stored beside it. A module of the
TensorFlow 1 format cannot be written, because only TensorFlow 1 can trace its graphs. Modules
written here load with `hub.KerasLayer` and `hub.load` instead.
"""

import logging
import re
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.interop import tf_models
from albert_keras.interop.checkpoint_tensors import is_object_based, read_named_tensors
from albert_keras.interop.google_checkpoint import read_model_tensors
from albert_keras.interop.model_folder import read_tokenizer_files
from albert_keras.interop.model_weights import HEADS, ModelWeights, check_expressible
from albert_keras.interop.tensor_table import read_reference_tensors
from albert_keras.layers.kernels import inference
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.heads import MaskedLMHead
from data_pipeline.errors import InputError

CONFIG = "albert_config.json"
_GRAPHS = ("saved_model.pb", "tfhub_module.pb")
#: The names of their masked-LM head start with the name of the model it was trained in.
_HEAD = re.compile(r"(?:[^/]+/)?cls/predictions/(.+)")
_GROUP = re.compile(r"bert/encoder/transformer/group_(\d+)/inner_group_(\d+)/.*")
_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
_RELEASES = tuple(f"albert-{size}-v2" for size in ("base", "large", "xlarge", "xxlarge"))
#: Size of a released vocabulary -> activation: the Chinese models have another.
_ACTIVATIONS = {30_000: "gelu", 21_128: "relu"}

#: Input of a text encoder in TensorFlow Hub -> ours.
_INPUTS = {
    "input_word_ids": "input_ids",
    "input_mask": "input_mask",
    "input_type_ids": "segment_ids",
}

logger = logging.getLogger(__name__)


def is_source(path):
    """Returns whether a path looks like the folder of a module; our own exports do not."""
    path = Path(path)
    has_graph = any((path / name).is_file() for name in _GRAPHS)
    has_tensors = (path / "variables" / "variables.index").is_file()
    return has_graph and has_tensors and not (path / "export.json").exists()


def read(path, trust_pickle=False, config=None):
    """Reads the variables and the tokenizer of a module, and runs nothing of it; see `interop`.

    Without a configuration in `assets/`, in the folder or above, the shape is taken from the
    released model of the same sizes.

    Source:
        google-research/albert, `export_to_tfhub.py`; tensorflow/models, `albert_encoder.py` and
        `export_tfhub_lib.py`.
    """
    path = Path(path)
    if not is_source(path):
        raise InputError(
            f"`{path}` is not the folder of a TensorFlow Hub module, which contains "
            "`saved_model.pb` and `variables/variables.index`."
        )
    prefix = str(path / "variables" / "variables")
    read_tensors = read_named_tensors if is_object_based(prefix) else read_model_tensors
    tensors = named = read_tensors(prefix)
    is_of_tf_models = "word_embeddings/embeddings" in tensors  # as albert_en_*
    if is_of_tf_models:
        tensors = {_HEAD.sub(r"bert/cls/predictions/\1", name): a for name, a in tensors.items()}
        rows = [row for row in tf_models.TABLE if row.theirs in tensors]
        named = {row.ours: tensors[row.theirs] for row in rows}
    folders = (path / "assets", path, path.absolute().parent)
    beside = (folder / CONFIG for folder in folders if (folder / CONFIG).is_file())
    config_path = config or next(beside, None)
    if config_path is not None:
        config = AlbertConfig.from_reference_json(config_path)
    else:
        config = shape_of_release(named, path)
        logger.info("%s has no configuration; its sizes match a released model: %s", path, config)
    read_model = tf_models.read_model if is_of_tf_models else read_reference_tensors
    return ModelWeights(
        config=config,
        tensors=read_model(config, tensors, path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(path / "assets", path),
    )


def write(weights, folder):
    """Writes a SavedModel that `hub.KerasLayer` loads, for inference and for fine-tuning.

    It takes a dict of int32 [B, S] `input_word_ids`, `input_mask`, `input_type_ids`, and returns
    `pooled_output` (also as `default`) [B, H], `sequence_output` [B, S, H] and `encoder_outputs`,
    the output of each block. With a masked-LM head it has `mlm`, which also takes
    `masked_lm_positions` [B, P] and returns `mlm_logits` [B, P, V]. Other heads are stored in its
    variables only.

    Source:
        https://www.tensorflow.org/hub/reusable_saved_models and
        https://www.tensorflow.org/hub/common_saved_model_apis/text.
    """
    check_expressible("A module of TF-Hub", weights.config, ())
    tensors = read_reference_tensors(weights.config, weights.tensors, weights.source)
    encoder = AlbertEncoder(_without_random_weights(weights.config), dtype="float32")
    _assign(encoder.weights, tensors)
    module = tf.train.Checkpoint()  # tracks attributes only; a Keras model would store its code
    _set_variables(module, encoder.weights)
    module.__call__ = _traced(lambda inputs, training: _encode(encoder, inputs, training)[1])
    if "masked_lm" in weights.heads:
        module.mlm = _masked_lm(encoder, weights.config, tensors)
    others = [name for name in tensors if not name.startswith(("bert/", *HEADS["masked_lm"]))]
    module.other_heads = [tf.Variable(tensors[name], name=name) for name in others]
    with tempfile.TemporaryDirectory() as temporary:
        for attribute, path in _write_assets(weights, Path(temporary)).items():
            setattr(module, attribute, tf.saved_model.Asset(str(path)))
        tf.saved_model.save(module, str(folder))


def shape_of_release(tensors: dict[str, np.ndarray], source: str | Path) -> AlbertConfig:
    """Returns the configuration of the released model whose sizes the tensors have.

    Published modules come without a configuration, and tensors do not show the number of layers
    and heads, the activation or the dropout; the dropout is 0, as in version 2. Heads may be an
    axis of the tensors, which have the reference's names.

    Raises:
        InputError: If tensors are missing, or no released model has these sizes.
    """
    try:
        sizes = _sizes(tensors)
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            f"`{source}` does not contain the tensors of an ALBERT model. Received {len(tensors)} "
            f"tensors: {error!r}."
        ) from error
    for name in _RELEASES if sizes["vocab_size"] in _ACTIVATIONS else ():
        release = AlbertConfig.from_name(
            name,
            vocab_size=sizes["vocab_size"],
            hidden_act=_ACTIVATIONS[sizes["vocab_size"]],
            max_position_embeddings=sizes["max_position_embeddings"],
            type_vocab_size=sizes["type_vocab_size"],
        )
        if all(getattr(release, field) == size for field, size in sizes.items()):
            return release
    raise InputError(
        f"`{source}` does not show `num_hidden_layers`, `num_attention_heads` and `hidden_act`, "
        f"and no released model has its sizes, {sizes}. Put its `albert_config.json` into the "
        "folder, or name the file with `config`."
    )


def _sizes(tensors):
    vocabulary, embedding = tensors["bert/embeddings/word_embeddings"].shape
    intermediate = tensors[f"{_BLOCK}/ffn_1/intermediate/dense/kernel"]
    blocks = [match for match in map(_GROUP.fullmatch, tensors) if match]
    return {
        "vocab_size": vocabulary,
        "embedding_size": embedding,
        "hidden_size": intermediate.shape[0],
        "intermediate_size": int(np.prod(intermediate.shape[1:])),
        "max_position_embeddings": tensors["bert/embeddings/position_embeddings"].shape[0],
        "type_vocab_size": tensors["bert/embeddings/token_type_embeddings"].shape[0],
        "num_hidden_groups": 1 + max(int(match[1]) for match in blocks),
        "inner_group_num": 1 + max(int(match[2]) for match in blocks),
    }


def _encode(encoder, inputs, training) -> tuple[tf.Tensor, dict]:
    """Returns the sequence output and the outputs of the module."""
    # Plain operations in training as well: who loads the module lacks our custom gradients.
    with inference():
        outputs = encoder(
            {ours: inputs[theirs] for theirs, ours in _INPUTS.items()},
            training=training,
            return_all_layers=True,
        )
    return outputs["sequence_output"], {
        "default": outputs["pooled_output"],
        "pooled_output": outputs["pooled_output"],
        "sequence_output": outputs["sequence_output"],
        "encoder_outputs": list(outputs["layer_outputs"]),
    }


def _masked_lm(encoder, config, tensors):
    head = MaskedLMHead(_without_random_weights(config), encoder.embeddings, dtype="float32")
    own = [weight for weight in head.weights if weight.name.startswith(HEADS["masked_lm"])]
    _assign(own, tensors)

    def call(inputs, training):
        sequence_output, outputs = _encode(encoder, inputs, training)
        with inference():
            logits = head(sequence_output, inputs["masked_lm_positions"])
        return outputs | {"mlm_logits": logits}

    module = tf.train.Checkpoint()
    _set_variables(module, [*encoder.weights, *own])
    module.__call__ = _traced(call, "masked_lm_positions")
    return module


def _traced(call, *more_inputs):
    """Returns a function traced for inference (the default) and for training."""
    inputs = {
        name: tf.TensorSpec([None, None], tf.int32, name) for name in (*_INPUTS, *more_inputs)
    }
    function = tf.function(lambda inputs, training=False: call(inputs, training), autograph=False)
    for training in (False, True):
        function.get_concrete_function(inputs, training=training)
    return function


def _set_variables(module, variables):
    module.variables = list(variables)
    module.trainable_variables = list(variables)
    module.regularization_losses = []


def _assign(variables, tensors):
    for variable in variables:
        variable.assign(tensors[variable.name.removesuffix(":0")])


def _without_random_weights(config):
    return config.model_copy(update={"initializer_range": 0.0})


def _write_assets(weights: ModelWeights, folder: Path) -> dict[str, Path]:
    """Writes the files that belong to the module; returns their paths by attribute."""
    files = {"config_file": folder / CONFIG}
    files["config_file"].write_text(weights.config.to_json(), encoding="utf-8")
    for number, (name, content) in enumerate(weights.tokenizer_files.items()):
        kinds = {".model": "sp_model_file", ".txt": "vocab_file"}  # as in tensorflow/models
        attribute = kinds.get(Path(name).suffix, "")
        if not attribute or attribute in files:
            attribute = f"tokenizer_file_{number}"
        files[attribute] = folder / name
        files[attribute].write_bytes(content)
    return files
