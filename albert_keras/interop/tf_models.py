"""Checkpoints of ALBERT in tensorflow/models (the package tf-models-official), read and written.

Covered are checkpoints of `networks.AlbertEncoder` and of `models.BertPretrainerV2` around it, as
`tf2_albert_encoder_checkpoint_converter.py` and training make them, with an `albert_config.json`
in the folder or above; tried with version 2.15.0. Variables are told by their names, which the
checkpoint lists beside the objects that hold them, so that what the objects are called ("encoder",
"model") does not matter. Not covered are classification heads, which have a pooler of their own
there, and encoders before `TransformerEncoderBlock` (2020), whose blocks name their parts
otherwise: their tensors are listed and refused.

Source: tensorflow/models, `official/nlp/modeling/networks/albert_encoder.py`,
`official/nlp/modeling/models/bert_pretrainer.py` and
`official/nlp/tools/tf2_albert_encoder_checkpoint_converter.py`.
"""

import json
import logging
import re
from pathlib import Path

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_files import (
    find_beside,
    find_prefix,
    find_prefixes,
    is_object_based,
    read_tokenizer_files,
)
from albert_keras.interop.google_checkpoint import read_reference_tensors, reference_config
from albert_keras.interop.keras_nlp_tables import check_heads, shapes_with_heads
from albert_keras.interop.model_weights import HEADS, ModelWeights
from albert_keras.interop.object_checkpoint import read_named_tensors
from albert_keras.interop.reference_shapes import check_expressible, encoder_shapes, head_shapes
from albert_keras.interop.tensor_table import Row, read_by_table, write_by_table
from albert_keras.interop.tf_models_objects import HEAD, encoder_objects, masked_lm_objects
from data_pipeline.errors import InputError

NAME = "tf-models"
CHECKPOINT, CONFIG = "albert_model.ckpt", "albert_config.json"
_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
_PARTS = (
    ("bert/embeddings/LayerNorm", "embeddings/layer_norm", ("gamma", "beta"), "same"),
    (
        "bert/encoder/embedding_hidden_mapping_in",
        "embedding_projection",
        ("kernel", "bias"),
        "same",
    ),
    *(
        (f"{_BLOCK}/{ours}", f"transformer/{theirs}", weights, layout)
        for ours, theirs, weights, layout in (
            ("attention_1/self/query", "self_attention/query", ("kernel", "bias"), "heads"),
            ("attention_1/self/key", "self_attention/key", ("kernel", "bias"), "heads"),
            ("attention_1/self/value", "self_attention/value", ("kernel", "bias"), "heads"),
            ("attention_1/output/dense", "self_attention/attention_output", ("kernel",), "heads"),
            ("attention_1/output/dense", "self_attention/attention_output", ("bias",), "same"),
            ("LayerNorm", "self_attention_layer_norm", ("gamma", "beta"), "same"),
            ("ffn_1/intermediate/dense", "intermediate", ("kernel", "bias"), "same"),
            ("ffn_1/intermediate/output/dense", "output", ("kernel", "bias"), "same"),
            ("LayerNorm_1", "output_layer_norm", ("gamma", "beta"), "same"),
        )
    ),
    ("bert/pooler/dense", "pooler_transform", ("kernel", "bias"), "same"),
    ("cls/predictions/transform/dense", f"{HEAD}/transform/dense", ("kernel", "bias"), "same"),
    (
        "cls/predictions/transform/LayerNorm",
        f"{HEAD}/transform/LayerNorm",
        ("gamma", "beta"),
        "same",
    ),
)
#: Ours -> the name of their variable.
TABLE = (
    Row("bert/embeddings/word_embeddings", "word_embeddings/embeddings"),
    Row("bert/embeddings/position_embeddings", "position_embedding/embeddings"),
    Row("bert/embeddings/token_type_embeddings", "type_embeddings/embeddings"),
    Row("cls/predictions/output_bias", f"{HEAD}/output_bias/bias"),
    *(
        Row(f"{ours}/{weight}", f"{theirs}/{weight}", layout)
        for ours, theirs, weights, layout in _PARTS
        for weight in weights
    ),
)
_MOMENTS = "m|v|vhat|momentum"
_ACTIVATIONS = ("gelu", "relu", "tanh", "linear")

logger = logging.getLogger(__name__)


def is_source(path):
    """Tells whether a path looks like a checkpoint of tensorflow/models.

    The list of names is not compressed; a functional Keras model calls its layers like this.
    """
    return any(
        is_object_based(prefix) and b"layer_with_weights-" in Path(f"{prefix}.index").read_bytes()
        for prefix in find_prefixes(path)
    )


def read(path, trust_pickle=False, config=None):
    """Reads a checkpoint; what an optimizer left in it is not taken.

    Args:
        path: str or Path. Prefix, one of the checkpoint's files, or a folder with one checkpoint.
        trust_pickle: bool. Not needed.
        config: str, Path or None. An `albert_config.json`; None takes the one in the checkpoint's
            folder or above.

    Returns:
        ModelWeights. With the masked-LM head if it is there.

    Raises:
        InputError: If there is no checkpoint or no configuration, their encoder cannot have the
            configuration, or the tensors are not those of it: with all that are wrong.
    """
    prefix = find_prefix(path)
    config_path = config or find_beside(prefix, CONFIG)
    if config_path is None:
        raise InputError(
            f"The shape of the model in `{path}` should be told by `{CONFIG}` in its folder or "
            "above, or by `config`. Received: none of these."
        )
    config = AlbertConfig.from_reference_json(config_path)
    _require_expressible(config)
    theirs = read_named_tensors(prefix)
    if left := _of_optimizers(theirs):
        logger.info("Left in `%s`: %s", prefix, ", ".join(sorted(left)))
    theirs = {name: array for name, array in theirs.items() if name not in left}
    there = {row.ours: None for row in TABLE if row.theirs in theirs}
    shapes = encoder_shapes(config) | head_shapes(config, there)
    check_heads(TABLE, theirs, shapes, config, path)
    return ModelWeights(
        config=config,
        tensors=read_by_table(TABLE, theirs, shapes, path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(Path(prefix).parent, Path(config_path).parent),
    )


def write(weights, folder):
    """Writes a checkpoint for `tf.train.Checkpoint(encoder=..., masked_lm=...)`, and what is read.

    `encoder` is their `AlbertEncoder`, `masked_lm` the head of their `BertPretrainerV2`; other
    heads have no place there, which is logged.

    Args:
        weights: ModelWeights.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If their encoder cannot have such a model, or a tensor is missing.
    """
    folder, config = Path(folder), weights.config
    _require_expressible(config)
    values = reference_config(config)
    kept = ("bert/", *HEADS["masked_lm"])
    left = sorted(name for name in weights.tensors if not name.startswith(kept))
    if left:
        logger.warning("tf-models has no place for these, they are left out: %s", ", ".join(left))
    tensors = {name: array for name, array in weights.tensors.items() if name.startswith(kept)}
    tensors = read_reference_tensors(config, tensors, weights.source)
    shapes = {name: array.shape for name, array in tensors.items()}
    theirs = write_by_table(TABLE, tensors, shapes_with_heads(TABLE, shapes, config))
    variables = {name: tf.Variable(array, name=name) for name, array in theirs.items()}
    objects = {"encoder": encoder_objects(variables)}
    if "masked_lm" in weights.heads:
        objects["masked_lm"] = masked_lm_objects(variables)
    tf.train.Checkpoint(**objects).save(str(folder / CHECKPOINT))
    (folder / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    for name, content in weights.tokenizer_files.items():
        (folder / name).write_bytes(content)


def _require_expressible(config):
    groups = (config.num_hidden_groups, config.inner_group_num)
    needed = config.embedding_size != config.hidden_size
    rules = (
        ("sharing", config.sharing == "all", '"all"', config.sharing),
        ("num_hidden_groups", groups == (1, 1), "1, as `inner_group_num`", groups),
        ("hidden_act", config.hidden_act in _ACTIVATIONS, str(_ACTIVATIONS), config.hidden_act),
        (
            "embedding_projection",
            config.projects_embeddings == needed,
            '"auto"',
            config.embedding_projection,
        ),
    )
    check_expressible("The encoder of tf-models", rules)


def _of_optimizers(names):
    """Returns those names that begin as the moments of a weight do, which give optimizers away."""
    weights = "|".join(re.escape(row.theirs) for row in TABLE)
    # The first is what Keras' older optimizers and those of tensorflow/models call them.
    moment = re.compile(f"([^/]+/)(({weights})/({_MOMENTS})|({_MOMENTS})/({weights}))")
    matches = filter(None, map(moment.fullmatch, names))
    optimizers = tuple({match[1] for match in matches})
    own = {"learning_rate"} if optimizers else set()
    return {name for name in names if name in own or name.startswith(optimizers)}
