"""Pairs of segments → `[CLS] a [SEP] b [SEP]`, truncated and padded, whole batches at once."""

import numpy as np

from data_pipeline.randomness import heads

_STREAM_FIRST, _STREAM_SECOND = 2, 3


def truncate_pairs(starts, lengths, keys, max_num_tokens):
    """Shortens pairs that are too long, piece by piece, at a random end of the longer segment.

    The longer segment (B on a tie) loses its first or its last piece until both fit. The lengths
    that remain follow from the lengths alone, and the pieces lost at the front are heads among
    fair coins; so no loop is needed.

    Args:
        starts: int64 [N, 2]. First piece of A and B.
        lengths: int64 [N, 2].
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
    """Lays out `[CLS] a [SEP] b [SEP]` and padding for N pairs.

    Args:
        ids: int32 [T]. Pieces that the pairs point into.
        starts: int64 [N, 2]. First piece of A and B.
        lengths: int64 [N, 2]. Pieces of A and B; together at most S - 3.
        max_seq_length: int. S.
        cls_id, sep_id, pad_id: int.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 = real) and `segment_ids` (0 up to and
        with the first [SEP], then 1; 0 on padding).
    """
    place = np.arange(max_seq_length)[None, :]  # [1, S]
    first_sep = 1 + lengths[:, :1]  # [N, 1]
    last_sep = first_sep + 1 + lengths[:, 1:]
    in_first = (place >= 1) & (place < first_sep)
    in_second = (place > first_sep) & (place < last_sep)
    source = np.where(in_first, starts[:, :1] + place - 1, starts[:, 1:] + place - first_sep - 1)
    text = in_first | in_second
    input_ids = np.where(text, ids[np.where(text, source, 0)], pad_id)
    input_ids = np.where((place == first_sep) | (place == last_sep), sep_id, input_ids)
    input_ids[:, 0] = cls_id
    return {
        "input_ids": input_ids.astype(np.int32),
        "input_mask": (place <= last_sep).astype(np.int32),
        "segment_ids": ((place > first_sep) & (place <= last_sep)).astype(np.int32),
    }
