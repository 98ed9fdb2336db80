"""The shape of a model that comes without its configuration, as the published modules do."""

import re

import numpy as np

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError

_GROUP = re.compile(r"bert/encoder/transformer/group_(\d+)/inner_group_(\d+)/.*")
_BLOCK = "bert/encoder/transformer/group_0/inner_group_0"
_RELEASES = tuple(f"albert-{size}-v2" for size in ("base", "large", "xlarge", "xxlarge"))
#: Pieces of the released vocabularies -> activation: the Chinese models have another.
_ACTIVATIONS = {30_000: "gelu", 21_128: "relu"}


def shape_of_release(tensors, source):
    """Takes the sizes that tensors show, and the rest from the released model that has them.

    Layers, heads and activation do not show. Dropout does not show either; it is none, as in
    version 2.

    Args:
        tensors: dict of the reference's name -> array. Heads may be an axis.
        source: str. What the user calls it.

    Returns:
        AlbertConfig.

    Raises:
        InputError: If tensors are missing, or no released model has these sizes.
    """
    try:
        sizes = _sizes(tensors)
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(
            f"`{source}` should hold the tensors of an ALBERT model. Received, of {len(tensors)} "
            f"tensors: {error!r}."
        ) from error
    for name in _RELEASES:
        release = AlbertConfig.from_name(
            name,
            vocab_size=sizes["vocab_size"],
            hidden_act=_ACTIVATIONS.get(sizes["vocab_size"], "gelu"),
            max_position_embeddings=sizes["max_position_embeddings"],
            type_vocab_size=sizes["type_vocab_size"],
        )
        is_alike = all(getattr(release, field) == size for field, size in sizes.items())
        if is_alike and sizes["vocab_size"] in _ACTIVATIONS:
            return release
    raise InputError(
        f"`{source}` does not show `num_hidden_layers`, `num_attention_heads` and `hidden_act`, "
        f"and no released model has its sizes, {sizes}. Put its `albert_config.json` into the "
        "folder, or name it by `config`."
    )


def _sizes(tensors):
    vocabulary, embedding = tensors["bert/embeddings/word_embeddings"].shape
    intermediate = tensors[f"{_BLOCK}/ffn_1/intermediate/dense/kernel"]
    places = [match for match in map(_GROUP.fullmatch, tensors) if match]
    return {
        "vocab_size": vocabulary,
        "embedding_size": embedding,
        "hidden_size": intermediate.shape[0],
        "intermediate_size": int(np.prod(intermediate.shape[1:])),
        "max_position_embeddings": tensors["bert/embeddings/position_embeddings"].shape[0],
        "type_vocab_size": tensors["bert/embeddings/token_type_embeddings"].shape[0],
        "num_hidden_groups": 1 + max(int(match[1]) for match in places),
        "inner_group_num": 1 + max(int(match[2]) for match in places),
    }
