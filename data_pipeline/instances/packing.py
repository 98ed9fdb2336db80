"""Segments → `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`, truncated and padded, in batches."""

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.randomness import heads

_STREAM_FIRST, _STREAM_SECOND = 2, 3


def truncate_pairs(starts, lengths, keys, max_num_tokens):
    """Truncates pairs that are too long, token by token, at a random end of the longer segment.

    The longer segment (B on a tie) loses its first or its last token until both fit. The final
    lengths follow from the initial ones, and the number of tokens removed at the front is the
    number of heads among fair coins, so no loop is needed. A single segment is the longer one of
    its pair.

    Args:
        starts: int64 [N, 2]. First token of A and B.
        lengths: int64 [N, 2]. 0 for the missing B of a single segment.
        keys: uint64 [N].
        max_num_tokens: int, or int64 [N]. Maximum length of A and B together.

    Returns:
        New starts and lengths, int64 [N, 2] each.

    Source:
        `truncate_seq_pair` in google-research/albert, `create_pretraining_data.py`.
    """
    shorter = lengths.min(axis=1)
    # First only the longer one shrinks; if that is not enough both do alternately, B first.
    kept = np.minimum(lengths, np.maximum(shorter, max_num_tokens - shorter)[:, None])
    surplus = np.maximum(kept.sum(axis=1) - max_num_tokens, 0)
    kept = kept - np.stack([surplus // 2, surplus - surplus // 2], axis=1)
    removed = lengths - kept
    streams = _STREAM_FIRST, _STREAM_SECOND
    front = [heads(keys, stream, removed[:, side]) for side, stream in enumerate(streams)]
    return starts + np.stack(front, axis=1), kept


def pack(
    ids,
    starts,
    lengths,
    max_seq_length: int,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int = 0,
    pair_separators: int = 1,
):
    """Lays out `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]`, and padding for N sequences.

    Args:
        ids: int32 [T]. Tokens that contain the segments.
        starts: int64 [N, 2]. First token of A and B.
        lengths: int64 [N, 2]. Tokens of A and B. If B has length 0 the sequence is A alone.
        max_seq_length: S.
        pair_separators: Number of [SEP] between A and B: 1, or 2 as in RoBERTa.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 for a token, 0 for padding) and
        `segment_ids` (0 up to and including the [SEP] before B, then 1; 0 for padding).

    Raises:
        InputError: If a sequence is longer than S.
    """
    starts, lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
    first_sep = 1 + lengths[:, 0]
    is_pair = lengths[:, 1] > 0
    before_second = first_sep + np.where(is_pair, pair_separators - 1, 0)
    last_sep = before_second + np.where(is_pair, 1 + lengths[:, 1], 0)
    longest = int(last_sep.max(initial=0)) + 1
    if longest > max_seq_length:
        raise InputError(
            "Segments with [CLS] and [SEP] must have at most `max_seq_length` tokens, which is "
            f"{max_seq_length}. Received: {longest}."
        )
    input_ids = np.full((len(starts), max_seq_length), pad_id, np.int32)
    # Copying segment by segment is faster than gathering token by token.
    for row, begin, end in zip(
        input_ids, starts.tolist(), (starts + lengths).tolist(), strict=True
    ):
        middle = 1 + end[0] - begin[0]
        row[1:middle] = ids[begin[0] : end[0]]
        if end[1] > begin[1]:
            second = middle + pair_separators
            row[second : second + end[1] - begin[1]] = ids[begin[1] : end[1]]
    input_ids[:, 0] = cls_id
    rows = np.arange(len(starts))
    for sep in (first_sep, before_second, last_sep):
        input_ids[rows, sep] = sep_id

    positions = np.arange(max_seq_length, dtype=np.int32)
    is_token = positions <= last_sep[:, None].astype(np.int32)
    is_second = positions > before_second[:, None].astype(np.int32)
    return {
        "input_ids": input_ids,
        "input_mask": is_token.astype(np.int32),
        "segment_ids": (is_token & is_second).astype(np.int32),
    }
