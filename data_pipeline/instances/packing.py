"""Segments → `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`, truncated and padded, in batches."""

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.randomness import heads

_STREAM_FIRST, _STREAM_SECOND = 2, 3


def truncate_pairs(starts, lengths, keys, max_num_tokens):
    """Shortens pairs that are too long, piece by piece, at a random end of the longer segment.

    The longer segment (B on a tie) loses its first or its last piece until both fit. The lengths
    that remain follow from the lengths alone, and the pieces lost at the front are heads among
    fair coins; so no loop is needed. A single segment is the longer one of its pair.

    Args:
        starts: int64 [N, 2]. First piece of A and B.
        lengths: int64 [N, 2]. 0 for B of a single segment.
        keys: uint64 [N].
        max_num_tokens: int. Room for A and B together.

    Returns:
        tuple. New starts and lengths, int64 [N, 2] each.

    Source:
        `truncate_seq_pair` in google-research/albert, `create_pretraining_data.py`.
    """
    shorter = lengths.min(axis=1)
    # First the longer one alone shrinks; if that is not enough both do in turn, B first.
    left = np.minimum(lengths, np.maximum(shorter, max_num_tokens - shorter)[:, None])
    surplus = np.maximum(left.sum(axis=1) - max_num_tokens, 0)
    left = left - np.stack([surplus // 2, surplus - surplus // 2], axis=1)
    lost = lengths - left
    front = np.stack(
        [heads(keys, _STREAM_FIRST, lost[:, 0]), heads(keys, _STREAM_SECOND, lost[:, 1])], axis=1
    )
    return starts + front, left


def pack(ids, starts, lengths, max_seq_length, *, cls_id, sep_id, pad_id=0):
    """Lays out `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]`, and padding for N sequences.

    Args:
        ids: int32 [T]. Pieces that the segments lie in.
        starts: int64 [N, 2]. First piece of A and B.
        lengths: int64 [N, 2]. Pieces of A and B, together at most S - 3. Where B has none the
            sequence is A alone, of at most S - 2.
        max_seq_length: int. S.
        cls_id, sep_id, pad_id: int.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 = real) and `segment_ids` (0 up to and
        with the first [SEP], then 1; 0 on padding).

    Raises:
        InputError: If a sequence is longer than S.
    """
    starts, lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
    first_sep = 1 + lengths[:, 0]
    last_sep = first_sep + np.where(lengths[:, 1] > 0, 1 + lengths[:, 1], 0)
    longest = int(last_sep.max(initial=0)) + 1
    if longest > max_seq_length:
        raise InputError(
            "Segments with [CLS] and [SEP] should be at most `max_seq_length` pieces long, "
            f"{max_seq_length}. Received: {longest}."
        )
    input_ids = np.full((len(starts), max_seq_length), pad_id, np.int32)
    # Copying run by run costs less than gathering piece by piece.
    for row, begin, end in zip(
        input_ids, starts.tolist(), (starts + lengths).tolist(), strict=True
    ):
        middle = 1 + end[0] - begin[0]
        row[1:middle] = ids[begin[0] : end[0]]
        if end[1] > begin[1]:
            row[middle + 1 : middle + 1 + end[1] - begin[1]] = ids[begin[1] : end[1]]
    input_ids[:, 0] = cls_id
    rows = np.arange(len(starts))
    input_ids[rows, first_sep] = sep_id
    input_ids[rows, last_sep] = sep_id

    place = np.arange(max_seq_length, dtype=np.int32)
    real = place <= last_sep[:, None].astype(np.int32)
    second = place > first_sep[:, None].astype(np.int32)
    return {
        "input_ids": input_ids,
        "input_mask": real.astype(np.int32),
        "segment_ids": (real & second).astype(np.int32),
    }
