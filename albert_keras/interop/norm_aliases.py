"""Normalisations that a Keras layer has named, in checkpoints of changed copies of the reference.

`layer_normalization`, `layer_normalization_1` and so on are numbered as the layers were made:
within a block attention's comes first, then the feed-forward part's.
"""

import re

from data_pipeline.errors import InputError

_ALIAS = re.compile(r"(.*)/layer_normalization(?:_(\d+))?/(beta|gamma)")
_BLOCK = re.compile(r"bert/encoder/transformer/group_\d+/inner_group_\d+")
_SINGLE = {"bert/embeddings", "cls/predictions/transform", "end_logits"}


def without_aliases(names, source):
    """Brings names of a checkpoint to those of the reference.

    Args:
        names: iterable of str. The model's tensors.
        source: str. What the user calls it.

    Returns:
        dict of the reference's name -> name, of all of them.

    Raises:
        InputError: If it is not clear which is which: a block with one or with more than two (a
            copy that gave each depth its own), or with the reference's names beside them.
    """
    names = list(names)
    found, numbers = {}, {}
    for name in names:
        match = _ALIAS.fullmatch(name)
        if match is None:
            found[name] = name
        else:
            numbers.setdefault(match[1], set()).add(int(match[2] or 0))
    problems = []
    for scope, those in numbers.items():
        wanted = 1 if scope in _SINGLE else 2 if _BLOCK.fullmatch(scope) else 0
        if len(those) != wanted:
            problems.append(f"{scope}: {len(those)} layer_normalization, {wanted} wanted")
        if any(name.startswith(f"{scope}/LayerNorm") for name in found):
            problems.append(f"{scope}: both LayerNorm and layer_normalization")
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(
            f"`{source}` has normalisations named by Keras, and it is not clear which is which. In "
            "the reference all depths of a group share a block, which has two; a copy that gave "
            f"each depth its own is another model:\n  {listing}"
        )
    for name in names:
        match = _ALIAS.fullmatch(name)
        if match is not None:
            place = sorted(numbers[match[1]]).index(int(match[2] or 0))
            found[f"{match[1]}/LayerNorm{'_1' if place else ''}/{match[3]}"] = name
    return found
