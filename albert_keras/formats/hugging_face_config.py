"""Finds the transformers model that corresponds to one of ours, and converts its `config.json`."""

import re

from albert_keras.config import SHAPE_KEYS, AlbertConfig, check_keys
from albert_keras.formats.detection import CONFIG
from albert_keras.formats.hugging_face_tables import ACTIVATION, FAMILIES, Family
from albert_keras.formats.model_weights import albert_sharing, check_expressible
from data_pipeline.errors import InputError

#: The id of padding, from which RoBERTa counts positions, and its default.
_PAD, _PAD_ID = "pad_token_id", 1
#: Their activation -> ours. Of several equal ones the first is written.
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
#: Key -> the values it may have, if it is present: anything else is a model we cannot express.
_ALLOWED = {
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "auto_map": ({}, None),  # code in the folder
}
#: A name of a class: not blank, without NUL and halves of surrogate pairs.
_NAME = re.compile(r"\s*[^\s\0\ud800-\udfff][^\0\ud800-\udfff]*")
_LABELS = ("id2label", "label2id", "num_labels")


def family_of(values: dict) -> Family:
    """Returns the kind of model, from `model_type`; InputError if it is none of `FAMILIES`."""
    name = values.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise InputError(
            f"`model_type` of a config.json must be one of {known}. Received: {name!r}."
        )
    return FAMILIES[name]


def family_for(config: AlbertConfig) -> tuple[Family, int]:
    """Chooses the kind of transformers model, and the number of groups, in which to write ours.

    InputError if transformers cannot express the model.
    """
    is_bert = config.sharing == "none" and config.inner_group_num == 1
    is_bert = is_bert and not config.projects_embeddings
    if is_bert and (config.position_offset or not config.type_vocab_size):
        name = "roberta" if config.position_offset else "distilbert"
        family = FAMILIES[name]
        check_expressible(f"The {name} of transformers", config, family.fixed, plain=False)
        return family, config.num_hidden_layers
    allowed = {} if is_bert else albert_sharing(config)
    allowed |= {"layer_norm_epsilon": config.layer_norm_epsilon}
    check_expressible("ALBERT and BERT of transformers", config, allowed)
    groups = config.num_hidden_groups if config.sharing == "all" else config.num_hidden_layers
    return FAMILIES["bert" if is_bert else "albert"], groups


def class_of(family: Family, heads: tuple[str, ...], foreign: dict) -> str:
    """Returns the class of transformers with these heads: the source's class, or the usual one.

    The source's class may belong to another family: a BERT may name AlbertForTokenClassification.
    InputError if there is no class with these heads.
    """
    classes = family.classes.get(tuple(heads))
    if classes is None:
        known = "; ".join(" and ".join(heads) or "none" for heads in family.classes)
        raise InputError(
            f"transformers has no {family.name} with the heads {' and '.join(heads)}. It has: "
            f"{known}."
        )
    named = foreign.get("architectures")
    first = str(named[0]) if isinstance(named, list) and len(named) == 1 else ""
    _, _, head = first.partition("For")
    return next((name for name in classes if head and name.endswith(f"For{head}")), classes[0])


def to_albert_config(family: Family, values: dict, heads: tuple[str, ...] = ()) -> AlbertConfig:
    """Converts the values of a `config.json` of a model with these heads into ours.

    Keys without a meaning here that `to_values` would not write become `foreign_keys`.
    transformers' ALBERT always projects the embeddings. InputError if our models cannot express it,
    or as `check_keys`.
    """
    name = family.name
    check_keys(values, CONFIG, [*map(family.key_of, SHAPE_KEYS)])
    if _NORM not in family.keys.values():
        _check_value(values, _NORM, (1e-12,))
    for key, allowed in _ALLOWED.items():
        _check_value(values, key, allowed)
    fields = dict.fromkeys(SHAPE_KEYS) | family.defaults
    ours = family.fixed | {
        field: values.get(family.key_of(field), default) for field, default in fields.items()
    }
    key = family.key_of(ACTIVATION)
    activation = values.get(key, family.activation)
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise InputError(f"`{key}` must be one of {known}. Received: {activation!r}.")
    ours[ACTIVATION] = _ACTIVATIONS[activation]
    if name == "roberta":
        if "masked_lm" in heads and ours[ACTIVATION] != "gelu_erf":
            raise InputError(
                f"`{key}` of a roberta with a masked-LM head must be gelu, because this head "
                f"always uses gelu in transformers. Received: {activation!r}."
            )
        ours |= _positions(values.get(_PAD, _PAD_ID), ours["max_position_embeddings"])
    if not family.shares:
        ours |= {"embedding_size": ours["hidden_size"], "sharing": "none"}
    elif ours["embedding_size"] == ours["hidden_size"]:
        ours["embedding_projection"] = "always"
    config = AlbertConfig(**ours, foreign_keys=_foreign_keys(family, values, heads))
    clashes = sorted(AlbertConfig.model_fields.keys() & config.foreign_keys.keys())
    if clashes:
        raise InputError(
            f"`{clashes[0]}` has no meaning for {family.name} in transformers, but has one in this "
            "package. Remove it from config.json."
        )
    if family.shares:
        albert_sharing(config)  # refuses groups that their code does not run
    return config


def _check_value(values, key, allowed):
    if key in values and values[key] not in allowed:
        raise InputError(f"`{key}` must be {allowed[0]!r}. Received: {values[key]!r}.")


def _positions(pad_id, rows):
    """Returns the fields of positions that are counted from the id of padding, as in RoBERTa."""
    if not (type(pad_id) is type(rows) is int and 0 <= pad_id <= rows - 2):
        raise InputError(
            f"`{_PAD}` of a roberta must be an id, and `max_position_embeddings` at least 2 more, "
            f"because positions start after it. Received: {pad_id!r} and {rows!r}."
        )
    return {"position_offset": pad_id + 1, "max_position_embeddings": rows - pad_id - 1}


def read_labels(values: dict, num_classes: int) -> tuple[str, ...]:
    """Returns the names of the classes; empty where they are only numbered, as for a choice.

    InputError if they are not numbered from 0 to the number of classes, or if `label2id` has some
    of the names with other numbers.
    """
    names = values.get("id2label") or {}
    numbers = [str(number) for number in range(len(names))]
    if not isinstance(names, dict) or names.keys() != set(numbers):
        raise InputError(f"`id2label` must name classes numbered from 0. Received: {names!r}.")
    labels = tuple(names[number] for number in numbers)
    for label in labels:
        if not isinstance(label, str | int) or not _NAME.fullmatch(str(label)):
            raise InputError(f"`id2label` must have names of classes. Received: {label!r}.")
    labels = tuple(map(str, labels))
    ids, inverse = values.get("label2id"), {label: at for at, label in enumerate(labels)}
    if isinstance(ids, dict) and ids.keys() & inverse.keys() and ids != inverse:
        raise InputError(
            f"`label2id` must be the inverse of `id2label`, {inverse!r}. Received: {ids!r}."
        )
    if labels == _numbered(len(labels)) or (num_classes == 1 and len(labels) != 1):
        return ()
    if len(labels) != num_classes:
        raise InputError(f"`id2label` must name {num_classes} classes. Received: {list(labels)}.")
    return labels


def to_values(config: AlbertConfig, heads: tuple[str, ...], labels=(), num_classes=0) -> dict:
    """Converts one of our configurations into the values of a `config.json`.

    `labels` are the names of the classifier's classes and may be empty; `num_classes` is 0 without
    a classifier.

    Raises:
        InputError: If transformers has no such model, or the number of labels is not the number of
            classes.
    """
    family, groups = family_for(config)
    foreign = dict(config.foreign_keys)
    values = {"architectures": [class_of(family, heads, foreign)], "model_type": family.name}
    for field in (*SHAPE_KEYS, *family.defaults):
        values[family.key_of(field)] = getattr(config, field)
    if family.shares:
        values["num_hidden_groups"] = groups
    values[family.key_of(ACTIVATION)] = next(
        theirs for theirs, ours in _ACTIVATIONS.items() if ours == config.hidden_act
    )
    if family.name == "roberta":
        values["max_position_embeddings"] = config.position_rows
        values[_PAD] = config.position_offset - 1
        # A table of segment types cannot be omitted there: see `blank`.
        values["type_vocab_size"] = max(1, config.type_vocab_size)
    values["tie_word_embeddings"] = True
    values["dtype" if "dtype" in foreign else "torch_dtype"] = "float32"
    if num_classes and not values["architectures"][0].endswith("MultipleChoice"):
        for key in _LABELS:
            foreign.pop(key, None)
        if labels and len(labels) != num_classes:
            raise InputError(
                f"There must be a label for each of {num_classes} classes. Received: {labels}."
            )
        if labels or num_classes != 2:  # transformers omits its default as well
            labels = labels or _numbered(num_classes)
            values["id2label"] = {str(number): name for number, name in enumerate(labels)}
            values["label2id"] = {name: number for number, name in enumerate(labels)}
    values = foreign | values
    to_albert_config(family, values, heads)  # refuses what could not be read again
    return values


def _foreign_keys(family, values, heads):
    """Returns the keys that are neither known here nor written in any case."""
    known = family.known_keys()
    known |= {"model_type", "tie_word_embeddings", "torch_dtype", _NORM}
    if family.name == "roberta":
        known.add(_PAD)
    if "classifier" in heads:
        known.update(_LABELS)
    if values.get("architectures") == [family.classes.get(tuple(heads), ("",))[0]]:
        known.add("architectures")
    return {key: value for key, value in values.items() if key not in known}


def _numbered(number):
    return tuple(f"LABEL_{index}" for index in range(number))
