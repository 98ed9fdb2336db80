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
from data_pipeline.limits import check_memory

#: Name -> array, as in a file of transformers.
Tensors = dict[str, np.ndarray]
#: Names that normalizations had in earlier versions, as in TensorFlow.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
#: Parts of the encoder, with which the names in a model without heads start.
_PARTS = ("embeddings.", "embeddings_project.", "encoder.", "transformer.", "pooler.")
_PRETRAINING = ("masked_lm", "sentence_order")
#: Constants that earlier versions saved, the same in each model.
_BUFFERS = {"embeddings.position_ids": np.arange, "embeddings.token_type_ids": np.zeros}
#: Table of the sines and cosines of rotary positions.
_ANGLES = "roformer.encoder.embed_positions.weight"

logger = logging.getLogger(__name__)


def with_current_names(tensors: Tensors, family: Family, source: str) -> Tensors:
    """Names tensors as transformers does today in models with heads, and drops constants.

    InputError if two tensors get the same name, or a constant has another value.
    """
    named = {}
    for name, array in tensors.items():
        current = name
        for old, new in _OLD_NAMES.items():
            current = current.removesuffix(old) + new if current.endswith(old) else current
        bare = current.removeprefix(family.prefix)
        if bare in _BUFFERS:
            expected = _BUFFERS[bare](np.shape(array)[-1] if np.ndim(array) else 0)
            if np.ndim(array) not in (1, 2) or not (np.asarray(array) == expected).all():
                raise InputError(
                    f"{name} of `{source}` must be the constant that all models store. Received: "
                    "other values."
                )
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


def with_angles(tensors: Tensors, config: AlbertConfig) -> Tensors:
    """Adds the sines and cosines of rotary positions, a constant that a RoFormer stores."""
    return tensors | {_ANGLES: _angles(config)}


def without_angles(tensors: Tensors, config: AlbertConfig, source: str) -> Tensors:
    """Removes the sines and cosines of rotary positions; InputError if they have other values."""
    found = tensors.get(_ANGLES)
    if found is None:
        return tensors
    wanted = _angles(config)
    # Of 32 bits, or rounded to 16.
    if np.shape(found) != wanted.shape or not np.allclose(found, wanted, atol=0.01):
        raise InputError(
            f"{_ANGLES} of `{source}` must have the sines and cosines of "
            f"{config.max_position_embeddings:,} positions that all models store. Received: other "
            "values."
        )
    return {name: array for name, array in tensors.items() if name != _ANGLES}


def _angles(config):
    """Returns the sines, then the cosines: float32 [positions, size of a head]."""
    half = config.hidden_size // config.num_attention_heads // 2
    check_memory(8 * half * config.max_position_embeddings, "The angles of the positions")
    wavelengths = np.power(10_000, np.arange(half) / half)
    angles = np.arange(config.max_position_embeddings)[:, None] / wavelengths
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
