"""Tensors of transformers, with the names and layout of current models with heads.

Files of earlier versions, and of models without heads, have other names, copies and constants.
"""

import logging

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.hugging_face_tables import Family
from albert_keras.formats.model_weights import zeros_of_pooler
from albert_keras.formats.tensor_table import Row
from data_pipeline.errors import InputError

#: Name -> array, as in a file of transformers.
Tensors = dict[str, np.ndarray]
#: Names that normalizations had in earlier versions, as in TensorFlow.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
#: Parts of the encoder, with which the names in a model without heads start.
_PARTS = ("embeddings.", "encoder.", "transformer.", "pooler.")
_PRETRAINING = ("masked_lm", "sentence_order")
#: Constants that earlier versions saved, the same in each model.
_CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids")

logger = logging.getLogger(__name__)


def with_current_names(tensors: Tensors, family: Family, source: str) -> Tensors:
    """Names tensors as transformers does today in models with heads, and drops constants.

    InputError if two tensors get the same name.
    """
    named = {}
    for name, array in tensors.items():
        current = name
        for old, new in _OLD_NAMES.items():
            current = current.removesuffix(old) + new if current.endswith(old) else current
        bare = current.removeprefix(family.prefix)
        if bare in _CONSTANTS:
            continue
        current = family.prefix + bare if bare.startswith(_PARTS) else current
        if current in named:
            raise InputError(f"`{source}` contains {current} twice, under two names.")
        named[current] = array
    return named


def without_copies(tensors: Tensors, family: Family, is_tied: bool, source: str) -> Tensors:
    """Removes the copies of tensors that two layers share; either of the two may be stored.

    If `is_tied`, a missing tensor is a copy of the stored one. A copy that differs is an
    InputError, because our output layer uses the table of the word embeddings.
    """
    tensors = dict(tensors)
    has_output = any(row.theirs in tensors for row in family.heads["masked_lm"])
    for copy, original in family.copies.items():
        if copy in tensors and original in tensors:
            if not np.array_equal(tensors[copy], tensors[original]):
                raise InputError(
                    f"{copy} of `{source}` must equal {original}: our models share one tensor."
                )
            del tensors[copy]
        elif copy in tensors and is_tied:
            tensors[original] = tensors.pop(copy)
        elif not is_tied and has_output and copy.endswith("weight"):
            raise InputError(
                f"{copy} of `{source}` is missing, although `tie_word_embeddings` is false."
            )
    return tensors


def without_unknown_heads(tensors: Tensors, family: Family) -> tuple[Tensors, tuple[str, ...]]:
    """Drops heads that our models do not have; returns the rest, and notes that name them.

    A head for a task is dropped with them if it belongs to the same module, because it is another
    head then. Unknown tensors of the encoder and of heads of pre-training stay: they are errors.
    """
    pretraining = {row.theirs for head in _PRETRAINING for row in family.heads.get(head, ())}
    ours = {family.prefix.removesuffix("."), *(name.partition(".")[0] for name in pretraining)}
    known = family.theirs_of_heads()
    modules = {name.partition(".")[0] for name in tensors if name not in known} - ours
    dropped = sorted(name for name in tensors if name.partition(".")[0] in modules)
    if not dropped:
        return tensors, ()
    note = f"heads that models here do not have are dropped: {', '.join(dropped)}"
    logger.warning(note)
    return {name: tensors[name] for name in tensors if name not in dropped}, (note,)


def without_unused_pooler(
    tensors: Tensors, family: Family, rows: list[Row], source: str
) -> Tensors:
    """Removes the pooler of the encoder if the class has one of its own, as files of 2020 have."""
    known = {row.theirs for row in rows}
    unused = {row.theirs for row in family.pooler} & tensors.keys() - known
    if unused:
        logger.warning("`%s` contains a pooler that its class does not use. It is omitted.", source)
    return {name: array for name, array in tensors.items() if name not in unused}


def with_pooler(tensors: Tensors, family: Family, config: AlbertConfig, source: str) -> Tensors:
    """Adds a pooler of zeros where the model has none."""
    if any(row.theirs in tensors for row in family.pooler):
        return tensors
    logger.warning("`%s` has no pooler, and none of its heads needs one: zeros are used.", source)
    zeros = zeros_of_pooler(config)
    return tensors | {row.theirs: zeros[row.ours] for row in family.pooler}
