"""`config.json` of transformers' ALBERT and BERT to and from `AlbertConfig`."""

import json
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.interop.hugging_face_family import (
    class_of,
    family_for,
    require_same_groups,
)
from data_pipeline.errors import InputError

_MAX_BYTES = 16_000_000
#: What a missing key means to transformers; these are called the same there and with us.
_BERT_DEFAULTS = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
_ALBERT_DEFAULTS = _BERT_DEFAULTS | {
    "vocab_size": 30_000,
    "embedding_size": 128,
    "hidden_size": 4096,
    "num_hidden_groups": 1,
    "num_attention_heads": 64,
    "intermediate_size": 16_384,
    "inner_group_num": 1,
    "down_scale_factor": 1,  # not known there, but in the released files
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_DEFAULTS = {"albert": _ALBERT_DEFAULTS, "bert": _BERT_DEFAULTS}
_DEFAULT_ACTIVATION = {"albert": "gelu_new", "bert": "gelu"}
#: Their activation → ours. The first of equal ones is written.
_ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_fast": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "silu": "silu",
    "swish": "silu",
    "linear": "linear",
}
_NORM = "layer_norm_eps"
#: Key → what it may be, if it is there: all else is another model than ours.
_ALLOWED = {
    _NORM: (1e-12,),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "auto_map": ({}, None),  # a program of its own
}
_LABELS = ("id2label", "label2id", "num_labels")
_DTYPES = ("dtype", "torch_dtype")  # the later and the earlier name


def read_values(path):
    """Reads a `config.json`: dict.

    Raises:
        InputError: If it is no JSON object, or of more than 16 MB.
    """
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise InputError(f"`{path}` should have {_MAX_BYTES:,} bytes at most.")
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{path}` should be a readable JSON file. Received: {error}.") from error
    if not isinstance(values, dict):
        raise InputError(f"`{path}` should hold a JSON object. Received: {type(values).__name__}.")
    return values


def to_albert_config(family, values, heads=()):
    """Brings a configuration into ours.

    Args:
        family: Family.
        values: dict. What a `config.json` holds.
        heads: tuple of str. Those of the model.

    Returns:
        AlbertConfig. What means nothing to us, and is not written anyhow, is in `foreign_keys`.
        ALBERT of transformers projects the embeddings always.

    Raises:
        InputError: If it describes another model than ours can be.
    """
    for key, allowed in _ALLOWED.items():
        if key in values and values[key] not in allowed:
            raise InputError(f"`{key}` should be {allowed[0]!r}. Received: {values[key]!r}.")
    defaults = _DEFAULTS[family.name]
    ours = {name: values.get(name, default) for name, default in defaults.items()}
    activation = values.get("hidden_act", _DEFAULT_ACTIVATION[family.name])
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise InputError(f"`hidden_act` should be one of {known}. Received: {activation!r}.")
    ours["hidden_act"] = _ACTIVATIONS[activation]
    if family.name == "bert":
        ours |= {"embedding_size": ours["hidden_size"], "sharing": "none"}
    elif ours["embedding_size"] == ours["hidden_size"]:
        ours["embedding_projection"] = "always"
    config = AlbertConfig(**ours, foreign_keys=_foreign_keys(family, values, heads))
    clashes = sorted(AlbertConfig.model_fields.keys() & config.foreign_keys.keys())
    if clashes:
        raise InputError(
            f"`{clashes[0]}` means nothing to {family.name} of transformers, but something else "
            "to us: take it out of config.json."
        )
    require_same_groups(config)
    return config


def read_labels(values):
    """Returns the names of the classes (tuple of str), none where they are only numbered.

    Raises:
        InputError: If they are not numbered from 0 on.
    """
    names = values.get("id2label") or {}
    numbers = [str(number) for number in range(len(names))]
    if not isinstance(names, dict) or names.keys() != set(numbers):
        raise InputError(f"`id2label` should name classes from 0 on. Received: {names!r}.")
    labels = tuple(str(names[number]) for number in numbers)
    return () if labels == _numbered(len(labels)) else labels


def to_values(config, heads, labels=(), num_classes=0):
    """Brings one of our configurations into transformers'.

    Args:
        config: AlbertConfig.
        heads: tuple of str. Those of the model.
        labels: tuple of str. Names of the classifier's classes, or none.
        num_classes: int. How many it has, 0 without one.

    Returns:
        dict, for `config.json`.

    Raises:
        InputError: If transformers has no such model, or there are more or fewer names than
            classes.
    """
    family, groups = family_for(config)
    foreign = dict(config.foreign_keys)
    values = {"architectures": [class_of(family, heads, foreign)], "model_type": family.name}
    values |= {name: getattr(config, name) for name in _DEFAULTS[family.name]}
    if family.name == "albert":
        values["num_hidden_groups"] = groups
    values["hidden_act"] = next(
        theirs for theirs, ours in _ACTIVATIONS.items() if ours == config.hidden_act
    )
    values |= {_NORM: 1e-12, "tie_word_embeddings": True}
    values["dtype" if "dtype" in foreign else "torch_dtype"] = "float32"
    if num_classes and not values["architectures"][0].endswith("MultipleChoice"):
        for key in _LABELS:
            foreign.pop(key, None)
        if labels and len(labels) != num_classes:
            raise InputError(
                f"There should be a label for each of {num_classes} classes. Received: {labels}."
            )
        if labels or num_classes != 2:  # what transformers takes two for is left out there, too
            labels = labels or _numbered(num_classes)
            values["id2label"] = {str(number): name for number, name in enumerate(labels)}
            values["label2id"] = {name: number for number, name in enumerate(labels)}
    values = foreign | values
    to_albert_config(family, values, heads)  # what is written can be read
    return values


def _foreign_keys(family, values, heads):
    """Returns the keys to keep: neither known to us nor what would be written anyhow."""
    written = {"model_type": family.name, "tie_word_embeddings": True, _NORM: 1e-12}
    written["torch_dtype"] = values.get("torch_dtype")
    written["architectures"] = list(family.classes.get(tuple(heads), ("",)))[:1]
    known = {*_DEFAULTS[family.name], "hidden_act"}
    if "classifier" in heads:
        known.update(_LABELS)
    return {
        key: value
        for key, value in values.items()
        if key not in known and not (key in written and written[key] == value)
    }


def _numbered(number):
    return tuple(f"LABEL_{place}" for place in range(number))
