"""Checkpoints of ALBERT in tensorflow/models (the package tf-models-official), read and written.

Supported are checkpoints of `networks.AlbertEncoder` and of `models.BertPretrainerV2` around it,
as `tf2_albert_encoder_checkpoint_converter.py` and training write them, with an
`albert_config.json` in the folder or above; tested with version 2.15.0. Variables are identified
by their names, which the checkpoint lists for its objects, so the names of the objects ("encoder",
"model") do not matter. Not supported, and refused with a list of their tensors, are classification
heads, which have a pooler of their own there, and encoders before `TransformerEncoderBlock` (2020).

Source: tensorflow/models, `official/nlp/modeling/networks/albert_encoder.py`,
`official/nlp/modeling/models/bert_pretrainer.py` and
`official/nlp/tools/tf2_albert_encoder_checkpoint_converter.py`.
"""

import logging
import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_index import read_index
from albert_keras.interop.checkpoint_tensors import (
    find_checkpoint,
    find_prefixes,
    is_object_based,
    read_named_tensors,
)
from albert_keras.interop.google_checkpoint import ACTIVATIONS, reference_config
from albert_keras.interop.model_folder import read_tokenizer_files, write_files, write_json
from albert_keras.interop.model_weights import (
    ModelWeights,
    check_expressible,
    encoder_shapes,
    head_shapes,
    pretraining_tensors,
    projection_rule,
)
from albert_keras.interop.tensor_table import (
    Row,
    check_heads,
    dense_rows,
    norm_rows,
    read_by_table,
    read_reference_tensors,
    shapes_with_heads,
    write_by_table,
)

CHECKPOINT, CONFIG = "albert_model.ckpt", "albert_config.json"
_DENSE, _NORM = ("/kernel", "/bias"), ("/gamma", "/beta")
_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
_ATTENTION = "transformer/self_attention"
_HEAD = "bert/cls/predictions"  # of the variables of the masked-LM head
#: Ours -> the name of their variable.
TABLE = (
    Row("bert/embeddings/word_embeddings", "word_embeddings/embeddings"),
    Row("bert/embeddings/position_embeddings", "position_embedding/embeddings"),
    Row("bert/embeddings/token_type_embeddings", "type_embeddings/embeddings"),
    *norm_rows("bert/embeddings/LayerNorm", "embeddings/layer_norm", _NORM),
    *dense_rows("bert/encoder/embedding_hidden_mapping_in", "embedding_projection", _DENSE),
    *(
        row
        for part in ("query", "key", "value")
        for row in dense_rows(
            f"{_BLOCK}/attention_1/self/{part}", f"{_ATTENTION}/{part}", _DENSE, "heads", "heads"
        )
    ),
    *dense_rows(
        f"{_BLOCK}/attention_1/output/dense", f"{_ATTENTION}/attention_output", _DENSE, "heads"
    ),
    *norm_rows(f"{_BLOCK}/LayerNorm", "transformer/self_attention_layer_norm", _NORM),
    *dense_rows(f"{_BLOCK}/ffn_1/intermediate/dense", "transformer/intermediate", _DENSE),
    *dense_rows(f"{_BLOCK}/ffn_1/intermediate/output/dense", "transformer/output", _DENSE),
    *norm_rows(f"{_BLOCK}/LayerNorm_1", "transformer/output_layer_norm", _NORM),
    *dense_rows("bert/pooler/dense", "pooler_transform", _DENSE),
    *dense_rows("cls/predictions/transform/dense", f"{_HEAD}/transform/dense", _DENSE),
    *norm_rows("cls/predictions/transform/LayerNorm", f"{_HEAD}/transform/LayerNorm", _NORM),
    Row("cls/predictions/output_bias", f"{_HEAD}/output_bias/bias"),
)
#: Layers of their encoder in order: what their variables' names start with, "" without variables.
_LAYERS = (
    "",
    "word_embeddings",
    "",
    "position_embedding",
    "type_embeddings",
    "",
    "embeddings/layer_norm",
    "",
    "embedding_projection",
    "",
    "",
    "transformer",
    "",
    "pooler_transform",
)
#: Attributes of their block, as in `_LAYERS`; an attribute with attributes of its own is a dict.
_BLOCK_ATTRIBUTES = {
    "_attention_layer": {
        "_query_dense": f"{_ATTENTION}/query",
        "_key_dense": f"{_ATTENTION}/key",
        "_value_dense": f"{_ATTENTION}/value",
        "_softmax": "",
        "_dropout_layer": "",
        "_output_dense": f"{_ATTENTION}/attention_output",
    },
    "_attention_dropout": "",
    "_attention_layer_norm": "transformer/self_attention_layer_norm",
    "_intermediate_dense": "transformer/intermediate",
    "_intermediate_activation_layer": "",
    "_inner_dropout_layer": "",
    "_output_dense": "transformer/output",
    "_output_dropout": "",
    "_output_layer_norm": "transformer/output_layer_norm",
}
_MOMENTS = "m|v|vhat|momentum"

logger = logging.getLogger(__name__)


def is_source(path):
    """Returns whether a path looks like a checkpoint of tensorflow/models."""
    # The list of names is not compressed; a functional Keras model calls its layers like this.
    return any(
        is_object_based(prefix) and b"layer_with_weights-" in read_index(prefix)
        for prefix in find_prefixes(path)
    )


def read(path, trust_pickle=False, config=None):
    """Reads a checkpoint, with the masked-LM head if it has one; see `interop`.

    The state of an optimizer is skipped.
    """
    prefix, config_path = find_checkpoint(path, config, CONFIG)
    config = AlbertConfig.from_reference_json(config_path)
    _check_config(config)
    theirs = read_named_tensors(prefix)
    skipped = _optimizer_state(theirs)
    if skipped:
        logger.info("Skipped in `%s`: %s", prefix, ", ".join(sorted(skipped)))
    theirs = {name: array for name, array in theirs.items() if name not in skipped}
    return ModelWeights(
        config=config,
        tensors=read_model(config, theirs, path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(Path(prefix).parent, config_path.parent),
    )


def read_model(config: AlbertConfig, theirs: dict, source: str | Path) -> dict[str, np.ndarray]:
    """Converts all variables into ours, in float32.

    InputError names all variables that do not match the configuration.
    """
    found = {row.ours: None for row in TABLE if row.theirs in theirs}
    shapes = encoder_shapes(config) | head_shapes(config, found)
    check_heads(TABLE, theirs, shapes, config, source)
    return read_by_table(TABLE, theirs, shapes, source)


def write(weights, folder):
    """Writes a checkpoint for `tf.train.Checkpoint(encoder=..., masked_lm=...)`; see `interop`.

    `encoder` is their `AlbertEncoder`, `masked_lm` the head of their `BertPretrainerV2`; other
    heads cannot be stored there, which is logged.
    """
    config = weights.config
    _check_config(config)
    values = reference_config(config)
    tensors = read_reference_tensors(
        config, pretraining_tensors(weights, "tf-models"), weights.source
    )
    shapes = {name: array.shape for name, array in tensors.items()}
    theirs = write_by_table(TABLE, tensors, shapes_with_heads(TABLE, shapes, config))
    variables = {name: tf.Variable(array, name=name) for name, array in theirs.items()}
    objects = {"encoder": _encoder_objects(variables)}
    if "masked_lm" in weights.heads:
        objects["masked_lm"] = _masked_lm_objects(variables)
    tf.train.Checkpoint(**objects).save(str(Path(folder, CHECKPOINT)))
    write_json(Path(folder, CONFIG), values)
    write_files(folder, weights.tokenizer_files)


def _check_config(config):
    groups = (config.num_hidden_groups, config.inner_group_num)
    rules = (
        ("sharing", config.sharing == "all", '"all"'),
        ("num_hidden_groups", groups == (1, 1), "1, like `inner_group_num`", groups),
        ("hidden_act", config.hidden_act in ACTIVATIONS, str(ACTIVATIONS)),
        projection_rule(config),
    )
    check_expressible("The encoder of tf-models", config, rules)


def _optimizer_state(names) -> set[str]:
    """Returns the names that belong to optimizers, which their moments of weights identify."""
    weights = "|".join(re.escape(row.theirs) for row in TABLE)
    # The first alternative is how Keras' older optimizers and tensorflow/models name them.
    moment = re.compile(f"([^/]+/)(({weights})/({_MOMENTS})|({_MOMENTS})/({weights}))")
    matches = filter(None, map(moment.fullmatch, names))
    optimizers = tuple({match[1] for match in matches})
    own = {"learning_rate"} if optimizers else set()
    return {name for name in names if name in own or name.startswith(optimizers)}


def _encoder_objects(variables: dict[str, tf.Variable]) -> tf.Module:
    """Returns objects in the structure in which Keras tracks the objects of the encoder.

    TensorFlow restores by the names of attributes, from object to object, and expects objects
    without variables as well. `variables` are by full name.
    """
    encoder = tf.Module()
    with_weights = 0
    projects = "embedding_projection/kernel" in variables
    layers = [name for name in _LAYERS if name != "embedding_projection" or projects]
    for number, name in enumerate(layers):
        is_block = name == "transformer"
        layer = _objects(_BLOCK_ATTRIBUTES, variables) if is_block else _leaf(name, variables)
        if name:
            setattr(encoder, f"layer_with_weights-{with_weights}", layer)
            with_weights += 1
        setattr(encoder, f"layer-{number}", layer)
    return encoder


def _masked_lm_objects(variables):
    """As `_encoder_objects`, for the masked-LM head."""
    head = tf.Module()
    head.embedding_table = variables["word_embeddings/embeddings"]
    head.dense = _leaf(f"{_HEAD}/transform/dense", variables)
    head.layer_norm = _leaf(f"{_HEAD}/transform/LayerNorm", variables)
    # The weight's name, under which theirs is saved, and the layer's attribute.
    for attribute in ("output_bias/bias", "bias"):
        setattr(head, attribute, variables[f"{_HEAD}/output_bias/bias"])
    return head


def _objects(attributes, variables):
    parent = tf.Module()
    for attribute, name in attributes.items():
        make = _objects if isinstance(name, dict) else _leaf
        setattr(parent, attribute, make(name, variables))
    return parent


def _leaf(name, variables):
    """Returns an object whose attributes are the variables called `name`/..."""
    leaf = tf.Module()
    for full_name, variable in variables.items():
        scope, _, attribute = full_name.rpartition("/")
        if scope == name:
            setattr(leaf, attribute, variable)
    return leaf
