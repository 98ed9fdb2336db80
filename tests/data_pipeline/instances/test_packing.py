"""`[CLS] a [SEP] b [SEP]`, truncated and padded."""

import random

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.instances.segments import pack, truncate_pairs
from data_pipeline.randomness import key_of, subkeys

KEYS = subkeys(key_of("packing"), np.arange(4000))


def packed(lengths, size, separators=1):
    ids, starts = np.arange(100, 120, dtype=np.int32), np.full((len(lengths), 2), (3, 10))
    special = {"cls_id": 2, "sep_id": 3, "pair_separators": separators}
    return pack(ids, starts, np.array(lengths), size, **special)


def test_pairs_and_single_segments_are_laid_out_in_full():
    found = packed([[2, 3]], 10)
    assert found["input_ids"].tolist() == [[2, 103, 104, 3, 110, 111, 112, 3, 0, 0]]
    assert found["input_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 1, 0, 0]]
    assert found["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0]]
    found = packed([[2, 3], [2, 0]], 9, separators=2)  # as in RoBERTa
    assert found["input_ids"].tolist() == [
        [2, 103, 104, 3, 3, 110, 111, 112, 3],
        [2, 103, 104, 3, 0, 0, 0, 0, 0],
    ]
    assert found["input_mask"].sum(axis=1).tolist() == [9, 4]
    assert found["segment_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1, 1, 1], [0] * 9]
    with pytest.raises(InputError, match="at most `max_seq_length`.* 8. Received: 9"):
        packed([[3, 3]], 8)


def test_truncation_never_changes_in_silence():
    pairs = np.array([[60, 10], [10, 60], [400, 300], [90, 0]])
    starts, lengths = truncate_pairs(np.zeros_like(pairs), pairs, KEYS[:4], 41)
    assert lengths.tolist() == [[31, 10], [10, 31], [21, 20], [41, 0]]
    assert starts.tolist() == [[16, 0], [0, 15], [195, 141], [27, 0]]


def test_lengths_after_truncation_are_those_of_the_reference_loop():
    rng = random.Random(0)
    pairs = np.array([[rng.randint(1, 60), rng.randint(1, 60)] for _ in range(500)])
    _, lengths = truncate_pairs(np.zeros_like(pairs), pairs, KEYS[:500], 41)
    assert lengths.tolist() == [_reference_lengths(first, second, 41) for first, second in pairs]


def _reference_lengths(first, second, budget):
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]
