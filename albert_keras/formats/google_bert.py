"""Checkpoints of google-research/bert: read into models without sharing, and written."""

from pathlib import Path

from albert_keras.config import SHAPE_KEYS, AlbertConfig, check_keys
from albert_keras.formats.detection import BERT_CONFIG, one_prefix
from albert_keras.formats.model_weights import BERT_DEFAULTS, check_expressible
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.formats.tensor_table import Naming, Row, expand, read_by_table, write_by_table
from albert_keras.runs.tensors import CheckpointTensors, is_training_state, write_tensors
from albert_keras.shape import encoder_shapes, head_shapes
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json

CHECKPOINT = "bert_model.ckpt"
#: Their layers are groups here. All names outside of a block are equal.
TABLE = Naming("/kernel", "/bias", "/gamma", "/beta").block(
    "bert/encoder/layer_{g}/",
    query="attention/self/{}",
    output="attention/output/dense",
    attention_norm="attention/output/LayerNorm",
    wide="intermediate/dense",
    narrow="output/dense",
    last_norm="output/LayerNorm",
)
#: Keys of `bert_config.json`, with the defaults of their code.
_DEFAULTS = BERT_DEFAULTS | {"type_vocab_size": 16, "hidden_act": "gelu"}
#: "gelu" is the erf form there, with which BERT was published (2018) and its weights are trained; a
#: later commit (bee6030) changed it to the tanh form for speed. In transformers it is the erf form.
_ACTIVATIONS = ("gelu_erf", "relu", "tanh", "linear")


def read(path):
    """Reads a checkpoint; see `formats`. Training state in it is skipped.

    Sharing is "none", E is H, and the sentence-order head is their head for the next sentence.

    Source:
        google-research/bert, `modeling.py`, `run_pretraining.py`.
    """
    prefix = one_prefix(path)
    config = _read_config(prefix.parent / BERT_CONFIG)
    stored = CheckpointTensors(str(prefix))
    theirs = {name: stored.read(name) for name in stored.shapes if not is_training_state(name)}
    shapes = encoder_shapes(config) | head_shapes(config, theirs)  # heads have our names there
    tensors = read_by_table(_rows(shapes, config), theirs, shapes, path)
    return OpenedModel.of(config, tensors, path)


def write(model: OpenedModel, folder: Path):
    """Writes a release of google-research/bert; see `formats`."""
    config, arrays = model.albert_config, model.arrays
    values = _config_values(config)
    write_tensors(folder / CHECKPOINT, write_by_table(_rows(arrays, config), arrays))
    write_json(folder / BERT_CONFIG, values)


def _rows(names, config):
    blocks = expand(TABLE, groups=config.num_hidden_layers)
    renamed = {row.ours for row in blocks}
    return blocks + [Row(name, name) for name in names if name not in renamed]


def _read_config(path):
    values = read_json(path)
    check_keys(values, path)
    known = {name: values.pop(name, default) for name, default in _DEFAULTS.items()}
    known |= {name: values.pop(name) for name in SHAPE_KEYS}
    if str(known["hidden_act"]).lower() == "gelu":
        known["hidden_act"] = "gelu_erf"
    clash = sorted(values.keys() & AlbertConfig.model_fields.keys())
    if clash:
        raise InputError(f"`{path}` has keys that BERT does not have: {', '.join(clash)}.")
    return AlbertConfig(
        **known, embedding_size=known["hidden_size"], sharing="none", foreign_keys=values
    )


def _config_values(config) -> dict:
    """Returns the values of a `bert_config.json`; InputError if BERT cannot have this shape."""
    has_group_each = config.num_hidden_groups == config.num_hidden_layers
    allowed = {
        "sharing": ("none", "all") if has_group_each else "none",
        "inner_group_num": 1,
        "embedding_size": config.hidden_size,
        "embedding_projection": "auto",
        "hidden_act": _ACTIVATIONS,
    }
    check_expressible("google-research/bert", config, allowed)
    values = {name: getattr(config, name) for name in (*SHAPE_KEYS, *_DEFAULTS)}
    if config.hidden_act == "gelu_erf":
        values["hidden_act"] = "gelu"
    return values | config.foreign_keys
