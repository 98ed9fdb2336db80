"""`[CLS] a [SEP] b [SEP]`, truncated and padded."""

import random

import numpy as np

from data_pipeline.packing import pack, truncate_pairs
from data_pipeline.randomness import key_of, subkeys

KEYS = subkeys(key_of("packing"), np.arange(4000))


def test_a_pair_is_laid_out_in_full():
    packed = pack(
        np.arange(100, 120, dtype=np.int32),
        np.array([[3, 10]]),
        np.array([[2, 3]]),
        10,
        cls_id=2,
        sep_id=3,
    )
    assert packed["input_ids"].tolist() == [[2, 103, 104, 3, 110, 111, 112, 3, 0, 0]]
    assert packed["input_mask"].tolist() == [[1, 1, 1, 1, 1, 1, 1, 1, 0, 0]]
    assert packed["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 0, 0]]


def test_a_pair_that_fits_is_left_alone():
    starts, lengths = truncate_pairs(np.array([[5, 50]]), np.array([[7, 9]]), KEYS[:1], 16)
    assert starts.tolist() == [[5, 50]] and lengths.tolist() == [[7, 9]]


def test_lengths_after_truncation_are_those_of_the_reference_loop():
    rng = random.Random(0)
    pairs = np.array([[rng.randint(1, 60), rng.randint(1, 60)] for _ in range(500)])
    _, lengths = truncate_pairs(np.zeros_like(pairs), pairs, KEYS[:500], 41)
    assert lengths.tolist() == [_reference_lengths(first, second, 41) for first, second in pairs]


def test_half_of_the_lost_pieces_are_lost_at_the_front():
    pairs = np.tile([[60, 10]], (4000, 1))
    starts, lengths = truncate_pairs(np.zeros_like(pairs), pairs, KEYS, 40)
    assert (lengths == [30, 10]).all()
    assert (starts[:, 0] <= 30).all() and (starts[:, 1] == 0).all()
    assert abs(starts[:, 0].mean() - 15) < 0.2


def _reference_lengths(first, second, budget):
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]
