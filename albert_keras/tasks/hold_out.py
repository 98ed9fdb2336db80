"""Holds out a share of examples, for those who have no development file."""

import hashlib
import json

from albert_keras.tasks.examples import TaggedExample
from data_pipeline.errors import InputError


def hold_out(examples, share):
    """Parts examples into those to train on and those to keep for scoring.

    Its text alone decides where an example goes: equal texts, whatever their case and white space,
    stay together, order makes no difference, and other examples change nothing. Only where one
    side would be empty does it get the text nearest to it.

    Args:
        examples: list of TextExample or TaggedExample.
        share: float. About how much is held out, above 0 and below 1.

    Returns:
        tuple of two lists: the rest and what is held out, each in the order of `examples`.

    Raises:
        InputError: If there are fewer than two different texts.
    """
    if not 0 < share < 1:
        raise InputError(f"The share to hold out should be between 0 and 1. Received: {share}.")
    places = [_place(example) for example in examples]
    different = sorted(set(places))
    if len(different) < 2:
        raise InputError(
            "Holding some examples out needs at least two different texts. "
            f"Received: {len(different)} in {len(examples)} examples. Give a development file."
        )
    limit = min(max(share, different[0]), different[-2])
    rest = [example for example, place in zip(examples, places, strict=True) if place > limit]
    held = [example for example, place in zip(examples, places, strict=True) if place <= limit]
    return rest, held


def _place(example):
    """Returns where the text of an example falls between 0 and 1, all places equally likely."""
    is_tagged = isinstance(example, TaggedExample)
    texts = example.words if is_tagged else (example.first, example.second or "")
    plain = [" ".join(text.casefold().split()) for text in texts]
    digest = hashlib.sha256(json.dumps(plain).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
