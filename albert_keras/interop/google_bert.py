"""Checkpoints of google-research/bert: read into models without sharing, and written."""

import json
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_files import (
    find_beside,
    find_prefix,
    find_prefixes,
    is_object_based,
    read_json,
    read_tokenizer_files,
)
from albert_keras.interop.checkpoint_tensors import write_tensors
from albert_keras.interop.google_checkpoint import read_model_tensors, release_files
from albert_keras.interop.model_weights import ModelWeights
from albert_keras.interop.reference_shapes import encoder_shapes, head_shapes
from albert_keras.interop.tensor_table import Row, expand, read_by_table, write_by_table
from data_pipeline.errors import InputError

NAME = "google-bert"
CHECKPOINT, CONFIG = "bert_model.ckpt", "bert_config.json"
_WORD_PIECE = "vocab.txt"
#: Part of a block, ours and theirs; a depth is a group with us. All other names are the same.
_PARTS = (
    ("attention_1/self/query", "attention/self/query"),
    ("attention_1/self/key", "attention/self/key"),
    ("attention_1/self/value", "attention/self/value"),
    ("attention_1/output/dense", "attention/output/dense"),
    ("ffn_1/intermediate/dense", "intermediate/dense"),
    ("ffn_1/intermediate/output/dense", "output/dense"),
)
_NORMS = (("LayerNorm", "attention/output/LayerNorm"), ("LayerNorm_1", "output/LayerNorm"))
_BLOCK = "bert/encoder/transformer/group_{g}/inner_group_0"
TABLE = tuple(
    Row(f"{_BLOCK}/{ours}/{weight}", f"bert/encoder/layer_{{g}}/{theirs}/{weight}")
    for parts, weights in ((_PARTS, ("kernel", "bias")), (_NORMS, ("beta", "gamma")))
    for ours, theirs in parts
    for weight in weights
)
#: Keys of `bert_config.json`, with what their code takes where one is missing.
_DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 16,
    "initializer_range": 0.02,
}
#: Our key in their file, since "gelu" is two functions there. BERT was published (2018) with the
#: erf form, and its first weights are trained with it; a later commit (bee6030) made it the tanh
#: form for speed. Where a file does not say, it is the erf form, as in transformers.
_FORM = "gelu_form"
_GELU = {"erf": "gelu_erf", "tanh": "gelu"}
_ACTIVATIONS = ("gelu_erf", "gelu", "relu", "tanh", "linear")


def is_source(path):
    """Tells whether a path looks like a checkpoint of google-research/bert."""
    prefixes = find_prefixes(path)
    if not prefixes or is_object_based(prefixes[0]):
        return False
    return bool(find_beside(prefixes[0], CONFIG)) and not find_beside(
        prefixes[0], "albert_config.json"
    )


def read(path, trust_pickle=False, config=None):
    """Reads a checkpoint; training state in it is left.

    Args:
        path: str or Path. Prefix, one of the checkpoint's files, or a folder with one checkpoint.
        trust_pickle: bool. Not needed.
        config: str, Path or None. A `bert_config.json`; None takes the one in the checkpoint's
            folder or above.

    Returns:
        ModelWeights. Sharing is "none", E is H, the sentence-order head is theirs for the next
        sentence.

    Raises:
        InputError: As of `google_checkpoint.read`.

    Source:
        google-research/bert, `modeling.py`, `run_pretraining.py`.
    """
    prefix = find_prefix(path)
    config_path = config or find_beside(prefix, CONFIG)
    if config_path is None:
        raise InputError(
            f"The shape of the model in `{path}` should be told by `{CONFIG}` in its folder or "
            "above, or by `config`. Received: none of these."
        )
    config = _read_config(config_path)
    theirs = read_model_tensors(prefix)
    # Their heads have our names, so that it is the same which are there.
    shapes = encoder_shapes(config) | head_shapes(config, theirs)
    return ModelWeights(
        config=config,
        tensors=read_by_table(_rows(shapes, config), theirs, shapes, path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(Path(prefix).parent, Path(config_path).parent),
    )


def write(weights, folder):
    """Writes a release of google-research/bert.

    Args:
        weights: ModelWeights.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If BERT cannot be of this shape, or a tensor is missing.
        OSError: If it cannot be written.
    """
    folder, config = Path(folder), weights.config
    values = _config_values(config)
    files = release_files(weights.tokenizer_files, _WORD_PIECE)
    shapes = encoder_shapes(config) | head_shapes(config, weights.tensors)
    same = [Row(name, name) for name in shapes]
    tensors = read_by_table(same, weights.tensors, shapes, weights.source)
    write_tensors(folder / CHECKPOINT, write_by_table(_rows(shapes, config), tensors))
    (folder / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _rows(shapes, config):
    blocks = expand(TABLE, groups=config.num_hidden_layers)
    theirs = {row.ours: row for row in blocks}
    return blocks + [Row(name, name) for name in shapes if name not in theirs]


def _read_config(path):
    values = read_json(path)
    if "vocab_size" not in values:
        raise InputError(f"`vocab_size` is required in {path}. Received: {sorted(values)}.")
    form = values.pop(_FORM, "erf")
    if form not in _GELU:
        raise InputError(f"`{_FORM}` in {path} should be one of {list(_GELU)}. Received: {form!r}.")
    known = {name: values.pop(name, default) for name, default in _DEFAULTS.items()}
    known["vocab_size"] = values.pop("vocab_size")
    if str(known["hidden_act"]).lower() == "gelu":
        known["hidden_act"] = _GELU[form]
    # A foreign key must not have the name of a field of ours.
    foreign = {name: value for name, value in values.items() if name not in _OURS}
    clash = sorted(values.keys() & _OURS)
    if clash:
        raise InputError(f"`{path}` has keys that BERT has not: {', '.join(clash)}.")
    return AlbertConfig(
        **known, embedding_size=known["hidden_size"], sharing="none", foreign_keys=foreign
    )


_OURS = AlbertConfig.model_fields.keys()


def _config_values(config):
    """Returns the values of a `bert_config.json`; InputError if BERT cannot be of this shape."""
    each_depth_its_own = config.sharing == "none" or (
        config.sharing == "all" and config.num_hidden_groups == config.num_hidden_layers
    )
    rules = (
        ("sharing", each_depth_its_own, '"none"', config.sharing),
        ("inner_group_num", config.inner_group_num == 1, "1", config.inner_group_num),
        (
            "embedding_size",
            config.embedding_size == config.hidden_size,
            "that of `hidden_size`",
            config.embedding_size,
        ),
        (
            "embedding_projection",
            not config.projects_embeddings or config.embedding_size != config.hidden_size,
            '"auto"',
            config.embedding_projection,
        ),
        ("hidden_act", config.hidden_act in _ACTIVATIONS, str(_ACTIVATIONS), config.hidden_act),
    )
    problems = [
        f"`{field}` should be {wanted}. Received: {received!r}."
        for field, holds, wanted, received in rules
        if not holds
    ]
    if problems:
        raise InputError(f"google-research/bert cannot have this model: {' '.join(problems)}")
    values = {name: getattr(config, name) for name in ("vocab_size", *_DEFAULTS)}
    for form, activation in _GELU.items():
        if config.hidden_act == activation:
            values |= {"hidden_act": "gelu", _FORM: form}
    return values | config.foreign_keys
