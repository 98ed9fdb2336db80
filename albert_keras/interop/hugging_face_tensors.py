"""What the tensors of transformers need besides a table: names of other days, copies, defaults."""

import logging

import numpy as np

from albert_keras.interop.tensor_table import expand
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Normalisations had the names of TensorFlow once.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
#: Parts of the encoder, whose names a model without heads begins with.
_PARTS = ("embeddings.", "encoder.", "pooler.")
#: Numbers that were saved once, though each model has the same.
_BUFFERS = {
    "embeddings.position_ids": np.arange,
    "embeddings.token_type_ids": np.zeros,
}
_PROJECTION = "bert/encoder/embedding_hidden_mapping_in"
_POOLER = "bert/pooler/dense"


def rows_of(family, config, heads=()):
    """Returns the table of a model without braces: list of Row.

    Args:
        family: Family.
        config: AlbertConfig. What each group shares is of no matter here.
        heads: iterable of str.
    """
    groups = config.num_hidden_layers if family.name == "bert" else config.num_hidden_groups
    table = family.encoder + family.pooler
    for head in heads:
        table += family.heads.get(head, ())
    return expand(table, groups, config.inner_group_num)


def named_as_today(tensors, family, source):
    """Names tensors as transformers does now in models with heads.

    Args:
        tensors: dict of name -> array.
        family: Family.
        source: str. What the user calls it.

    Returns:
        dict of name -> array, without buffers.

    Raises:
        InputError: If two get one name, or a buffer holds anything else than it must.
    """
    named = {}
    for name, array in tensors.items():
        today = name
        for old, new in _OLD_NAMES.items():
            today = today.removesuffix(old) + new if today.endswith(old) else today
        bare = today.removeprefix(family.prefix)
        if bare in _BUFFERS:
            _require_buffer(name, array, _BUFFERS[bare], source)
            continue
        today = family.prefix + bare if bare.startswith(_PARTS) else today
        if today in named:
            raise InputError(f"`{source}` holds {today} twice, under two names.")
        named[today] = array
    return named


def without_copies(tensors, family, is_tied, source):
    """Takes out the copies of tensors that two layers share; either may be the one that is there.

    Args:
        tensors: dict of name -> array.
        family: Family.
        is_tied: bool. Whether what is missing is a copy of what is there.
        source: str. What the user calls it.

    Returns:
        dict of name -> array.

    Raises:
        InputError: If a copy differs: our output layer is the table of the word embeddings.
    """
    tensors = dict(tensors)
    has_output = any(row.theirs in tensors for row in family.heads["masked_lm"])
    for copy, original in family.copies.items():
        if copy in tensors and original in tensors:
            if not np.array_equal(tensors[copy], tensors[original]):
                raise InputError(
                    f"{copy} of `{source}` should equal {original}: we have one tensor for both."
                )
            del tensors[copy]
        elif copy in tensors and is_tied:
            tensors[original] = tensors.pop(copy)
        elif not is_tied and has_output and copy.endswith("weight"):
            raise InputError(
                f"{copy} of `{source}` is missing, though `tie_word_embeddings` is false."
            )
    return tensors


def with_pooler(tensors, family, config, heads, classes, source):
    """Adds a pooler of zeros where the model has none and no head wants one.

    Args:
        tensors: dict of their name -> array.
        family: Family.
        config: AlbertConfig.
        heads: tuple of str.
        classes: list of str. `architectures`, if known.
        source: str. What the user calls it.

    Returns:
        dict of name -> array.
    """
    names = [row.theirs for row in family.pooler]
    wants = "sentence_order" in heads or (
        "classifier" in heads
        and not any(str(name).endswith(family.without_pooler) for name in classes)
    )
    if wants or any(name in tensors for name in names):
        return tensors
    logger.warning("`%s` has no pooler, and no head of it wants one: ours is zeros.", source)
    size = config.hidden_size
    weight, bias = names
    return tensors | {
        weight: np.zeros((size, size), np.float32),
        bias: np.zeros(size, np.float32),
    }


def has_zero_pooler(tensors):
    """Tells whether our pooler is what `with_pooler` adds."""
    return not any(tensors[f"{_POOLER}/{part}"].any() for part in ("kernel", "bias"))


def without_pooler(tensors):
    """Takes our pooler out: dict of our name -> array."""
    return {name: array for name, array in tensors.items() if not name.startswith(_POOLER)}


def with_identity_projection(tensors, config):
    """Adds a projection that changes nothing, exactly: dict of our name -> array."""
    size = config.hidden_size
    return tensors | {
        f"{_PROJECTION}/kernel": np.eye(size, dtype=np.float32),
        f"{_PROJECTION}/bias": np.zeros(size, np.float32),
    }


def without_identity_projection(tensors, config):
    """Takes a projection out that changes nothing.

    Args:
        tensors: dict of our name -> array.
        config: AlbertConfig.

    Returns:
        (dict, AlbertConfig). Both as they were, if there is none.
    """
    kernel, bias = (tensors.get(f"{_PROJECTION}/{part}") for part in ("kernel", "bias"))
    is_square = kernel is not None and config.embedding_size == config.hidden_size
    if not is_square or bias.any() or not np.array_equal(kernel, np.eye(len(kernel))):
        return tensors, config
    bare = {name: array for name, array in tensors.items() if not name.startswith(_PROJECTION)}
    return bare, config.replace(embedding_projection="auto")


def _require_buffer(name, array, make, source):
    wanted = make(np.shape(array)[-1] if np.ndim(array) else 0)
    if np.ndim(array) not in (1, 2) or not (np.asarray(array) == wanted).all():
        raise InputError(f"{name} of `{source}` should be those of every model. They are others.")
