"""Rows of a pre-trained model laid out in Python, to compare the graph with."""

import numpy as np

from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.tasks.pair_features import truncated_lengths


def masked_row(tokenizer, text, max_seq_length):
    """Lays out a text with masks.

    Args:
        tokenizer: Tokenizer.
        text: str. `[MASK]` in it stands for a mask.
        max_seq_length: int. S; what is longer is cut.

    Returns:
        tuple of list of int. Ids with [CLS] and [SEP], and the places of the masks among them.
    """
    first, *others = text.split(MASK_LITERAL)
    ids = tokenizer.encode(first)
    for part in others:
        ids += [tokenizer.mask_id, *tokenizer.continuation_ids(part)]
    ids = [tokenizer.cls_id, *ids[: max_seq_length - 2], tokenizer.sep_id]
    return ids, [place for place, id in enumerate(ids) if id == tokenizer.mask_id]


def order_row(tokenizer, first, second, max_seq_length):
    """Lays out two texts, each with [SEP] even if it is empty.

    Args:
        tokenizer: Tokenizer.
        first, second: str.
        max_seq_length: int. S; the longer one is cut, the second on a tie.

    Returns:
        tuple of list of int. Ids and segments.
    """
    first, second = tokenizer.encode(first), tokenizer.encode(second)
    lengths = np.array([[len(first), len(second)]])
    [kept] = truncated_lengths(lengths, max_seq_length - 3)
    first, second = first[: kept[0]], second[: kept[1]]
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
    return ids, [0] * (len(first) + 2) + [1] * (len(second) + 1)
