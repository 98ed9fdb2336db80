"""Sentences become pairs of segments whose order is the label."""

import numpy as np
import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.randomness import key_of
from data_pipeline.segments import Shard, concatenate, segment_pairs

STARTS = np.ones(100_000, bool)


def shard_of(*documents):
    """Lays out documents given as lists of sentence lengths; every piece has an id of its own."""
    edges, start = [], 0
    for lengths in documents:
        edges.append(start + np.cumsum([0, *lengths]))
        start += sum(lengths)
    keys = np.arange(len(documents), dtype=np.uint64)
    return Shard(np.arange(start, dtype=np.int32), edges, keys)


def pairs_of(shard, number=0, seed=0, starts=STARTS, **changes):
    config = PretrainingDataConfig(**{"max_seq_length": 23, "short_seq_prob": 0} | changes)
    return segment_pairs(shard, number, config, key_of(seed, number), starts)


def test_in_order_pairs_follow_each_other_and_swapped_ones_are_their_mirror():
    shard = shard_of([4] * 3000)
    pairs = pairs_of(shard)
    first_end = pairs.starts + pairs.lengths
    in_order = pairs.labels == 0
    np.testing.assert_array_equal(first_end[in_order, 0], pairs.starts[in_order, 1])
    np.testing.assert_array_equal(first_end[~in_order, 1], pairs.starts[~in_order, 0])
    assert (pairs.lengths.sum(axis=1) == 20).all()


def test_both_orders_are_equally_frequent():
    labels = np.concatenate(
        [pairs_of(shard_of([4] * 500), seed=seed).labels for seed in range(100)]
    )
    assert len(labels) == 10_000
    assert abs(labels.mean() - 0.5) < 3 * 0.5 / len(labels) ** 0.5


def test_the_border_between_segments_is_even_over_the_sentences():
    lengths = pairs_of(shard_of([5] * 8000)).lengths
    counts = np.bincount(lengths[:, 0] // 5, minlength=4)[1:4]
    assert np.abs(counts / counts.mean() - 1).max() < 0.1


def test_every_sentence_is_used_once():
    pairs = pairs_of(shard_of([3, 8, 2, 9, 4, 4, 1, 7]))
    assert pairs.lengths.sum() == 38


def test_a_lone_sentence_is_split_at_a_word_start_near_its_middle():
    starts = np.zeros(20, bool)
    starts[[2, 9, 17]] = True
    pairs = pairs_of(shard_of([20]), starts=starts)
    assert sorted(pairs.starts[0]) == [0, 9] and pairs.lengths.sum() == 20


def test_a_lone_word_cannot_be_split_and_is_counted():
    pairs = pairs_of(shard_of([5]), starts=np.zeros(5, bool))
    assert len(pairs.labels) == 0 and pairs.skipped == 1


def test_lone_sentences_can_be_skipped():
    pairs = pairs_of(shard_of([20]), single_sentence_policy="skip")
    assert len(pairs.labels) == 0 and pairs.skipped == 1


def test_under_the_reference_policy_a_lone_sentence_meets_another_document():
    pairs = pairs_of(shard_of([10], [6, 6]), single_sentence_policy="nsp")
    assert pairs.labels.tolist() == [1]
    assert pairs.starts[0, 0] == 0 and pairs.starts[0, 1] >= 10


def test_next_sentence_pairs_come_from_elsewhere_half_of_the_time():
    shard = shard_of([4] * 2000, [4] * 100)
    pairs = pairs_of(shard, objective="nsp")
    elsewhere = pairs.starts[:, 1] >= 8000
    np.testing.assert_array_equal(elsewhere, pairs.labels == 1)
    assert 0.45 < elsewhere.mean() < 0.62  # lone last sentences have no other second segment


def test_sentences_not_used_before_a_random_second_segment_are_used_again():
    shard = shard_of([4] * 2000, [4] * 100)
    pairs = pairs_of(shard, objective="nsp")
    used = pairs.lengths[:, 0].sum() + pairs.lengths[pairs.labels == 0, 1].sum()
    assert used == 8000


def test_short_sequences_are_as_frequent_as_asked():
    pairs = concatenate(
        [pairs_of(shard_of([1] * 4000), short_seq_prob=0.3, seed=seed) for seed in range(10)]
    )
    # A short target is even over 2..20, and only 20 of these is full length.
    assert (pairs.lengths.sum(axis=1) < 20).mean() == pytest.approx(0.3 * 18 / 19, abs=0.03)
