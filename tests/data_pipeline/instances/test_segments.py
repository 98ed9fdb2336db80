"""Sentences become pairs of segments or runs of one, which are truncated and packed."""

import hashlib
import random

import numpy as np
import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.instances.segments import (
    DocumentBlock,
    add_separators,
    pack,
    split_into_pairs,
    truncate_pairs,
)
from data_pipeline.randomness import key_of, subkeys

SEP = 100_000
STARTS = np.ones(SEP + 1, bool)
MIXED = [[3, 8, 2, 9, 4], [1], [40], [5, 1, 1, 30, 2, 2], [6, 6]] * 40
FORMATS = ("segment-pair", "sentence-pair", "full-sentences", "doc-sentences")
PAIR_FORMATS, SINGLE_FORMATS = FORMATS[:2], FORMATS[2:]
CUT = {"max_seq_length": 23, "short_seq_prob": 0, "overflow": "cut"}


def shard_of(*documents, seed=0):
    """Lays out documents given as lists of sentence lengths; every piece has an id of its own."""
    lengths = [length for document in documents for length in document]
    keys = subkeys(key_of(seed), np.arange(len(documents)))
    ids = np.arange(sum(lengths), dtype=np.int32)
    return DocumentBlock.of(ids, lengths, [len(document) for document in documents], keys)


def pairs_of(shard, copy=0, starts=STARTS, separators=1, **changes):
    config = PretrainingDataConfig(**CUT | changes)
    vocabulary = MaskingVocabulary(starts, np.arange(1), 4, 2, SEP, separators)
    return split_into_pairs(add_separators(shard, config, SEP), config, copy, vocabulary)


def pairs_of_first_document(shard, **changes):
    pairs = pairs_of(shard, **changes)
    own = pairs.starts[:, 0] < shard.ends[shard.first_sentences[1] - 1]
    return pairs._replace(**{name: getattr(pairs, name)[own] for name in pairs._fields[:4]})


def rows_of(pairs):
    return [tuple(row) for row in np.hstack([pairs.starts, pairs.lengths]).tolist()]


def documents_of(shard, pieces):
    document_ends = shard.ends[shard.first_sentences[1:] - 1]
    return np.searchsorted(document_ends, pieces, side="right")


@pytest.mark.parametrize("input_format", PAIR_FORMATS)
def test_swapped_pairs_are_mirror_images_of_those_left_in_order(input_format):
    shard = shard_of(*MIXED)
    pairs = pairs_of(shard, input_format=input_format)
    natural = pairs_of(shard, input_format=input_format, objective="none")
    swapped = pairs.labels == 1
    assert 0 < swapped.sum() < len(swapped) and not natural.labels.any()
    np.testing.assert_array_equal(pairs.starts[swapped, ::-1], natural.starts[swapped])
    np.testing.assert_array_equal(pairs.lengths[swapped, ::-1], natural.lengths[swapped])
    np.testing.assert_array_equal(pairs.starts[~swapped], natural.starts[~swapped])


def test_a_lone_sentence_is_split_at_a_word_start_near_its_middle():
    starts = np.zeros(20, bool)
    starts[[2, 9, 17]] = True
    pairs = pairs_of(shard_of([20]), starts=starts)
    assert sorted(pairs.starts[0]) == [0, 9] and pairs.lengths.sum() == 20


@pytest.mark.parametrize("input_format", PAIR_FORMATS)
def test_under_the_reference_policy_a_lone_sentence_meets_another_document(input_format):
    pairs = pairs_of_first_document(
        shard_of([10], [6, 6]), single_sentence_policy="nsp", input_format=input_format
    )
    assert pairs.labels.tolist() == [1]
    assert pairs.starts[0, 0] == 0 and pairs.starts[0, 1] >= 10


def test_the_second_segment_comes_from_the_same_document_only_if_there_is_no_other():
    pairs = pairs_of(shard_of([4] * 100), objective="nsp")
    assert (pairs.starts[:, 1] < 400).all() and pairs.labels.any()
    shard = shard_of(*[[4] * 20] * 30)
    pairs = pairs_of(shard, objective="nsp")
    first, second = documents_of(shard, pairs.starts).T
    np.testing.assert_array_equal(first != second, pairs.labels == 1)
    assert len(set(second[pairs.labels == 1])) == 30


@pytest.mark.parametrize(
    "objective, policy", [("sop", "split"), ("sop", "nsp"), ("nsp", "split"), ("none", "skip")]
)
@pytest.mark.parametrize("input_format", PAIR_FORMATS)
def test_no_pair_in_order_takes_its_halves_from_two_documents(input_format, objective, policy):
    shard = shard_of(*MIXED)
    changes = {"objective": objective, "single_sentence_policy": policy, "short_seq_prob": 0.3}
    pairs = pairs_of(shard, input_format=input_format, **changes)
    in_order = pairs.labels == 0
    starts, lengths = pairs.starts[in_order], pairs.lengths[in_order]
    assert (lengths > 0).all()
    np.testing.assert_array_equal(starts[:, 0] + lengths[:, 0], starts[:, 1])
    last = starts[:, 1] + lengths[:, 1] - 1
    np.testing.assert_array_equal(documents_of(shard, starts[:, 0]), documents_of(shard, last))


@pytest.mark.parametrize("input_format", FORMATS)
def test_copies_are_cut_differently_and_each_always_alike(input_format):
    shard = shard_of(*[[4] * 100] * 10)
    changes = {"input_format": input_format, "short_seq_prob": 0.1}
    first, again, second = (pairs_of(shard, copy=copy, **changes) for copy in (0, 0, 1))
    assert rows_of(first) == rows_of(again) and rows_of(first) != rows_of(second)
    np.testing.assert_array_equal(first.keys, again.keys)
    keys = np.concatenate([first.keys, second.keys])
    assert len(np.unique(keys)) == len(keys)


@pytest.mark.parametrize("input_format", FORMATS)
def test_shards_without_documents_and_of_one_word_are_cut(input_format):
    nothing = pairs_of(shard_of(), input_format=input_format)
    assert nothing.starts.shape == nothing.lengths.shape == (0, 2) and nothing.skipped == 0
    assert nothing.labels.shape == nothing.keys.shape == (0,)
    word = pairs_of(shard_of([1]), input_format=input_format)
    assert (len(word.labels), word.skipped) == ((0, 1) if input_format in PAIR_FORMATS else (1, 0))


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({}, "8ec17047074869e3"),
        ({"objective": "nsp"}, "03035382401dcae0"),
        ({"objective": "none", "single_sentence_policy": "skip"}, "1ad5b452833a9550"),
        ({"short_sequences": "document", "single_sentence_policy": "nsp"}, "7c678d8d463c0363"),
        ({"input_format": "sentence-pair"}, "8fe984c1d8be4b85"),
        ({"input_format": "sentence-pair", "objective": "nsp"}, "bf6478a442718fdd"),
        ({"input_format": "full-sentences"}, "6990e547c26c022d"),
        ({"input_format": "doc-sentences"}, "61befcab3f6b4933"),
    ],
)
def test_records_of_a_fixed_shard_stay_the_same(changes, expected):
    starts = np.arange(SEP + 1) % 3 == 0
    pairs = pairs_of(shard_of(*MIXED), copy=1, starts=starts, short_seq_prob=0.2, **changes)
    values = [*(array.astype("<i8") for array in pairs[:3]), pairs.keys.astype("<u8")]
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in values)
    assert hashlib.sha256(content).hexdigest()[:16] == expected


@pytest.mark.parametrize("separators", [1, 2])
@pytest.mark.parametrize("input_format", PAIR_FORMATS)
def test_text_beyond_a_record_begins_the_next_one(input_format, separators):
    shard, starts = shard_of(*MIXED), np.arange(SEP + 1) % 3 == 0
    changes = {"input_format": input_format, "overflow": "carry", "short_seq_prob": 0.2}
    pairs = pairs_of(shard, starts=starts, separators=separators, **changes)
    assert pairs.lengths.sum(axis=1).max() <= 21 - separators
    used = np.zeros(len(shard.ids), int)
    for start, length in zip(pairs.starts.ravel(), pairs.lengths.ravel(), strict=True):
        used[start : start + length] += 1
    assert used.max() == 1 and (used == 0).sum() <= 3 * pairs.skipped  # words of 3 pieces
    first, second = pairs.starts.T
    np.testing.assert_array_equal(pairs.labels == 1, first > second)  # the label is the order
    in_order = pairs.starts[pairs.labels == 0], pairs.lengths[pairs.labels == 0]
    np.testing.assert_array_equal(in_order[0][:, 0] + in_order[1][:, 0], in_order[0][:, 1])


# Single segments: runs of sentences, within documents or across them


def runs_of(shard, **changes):
    pairs = pairs_of(shard, **changes)
    return pairs.starts[:, 0], pairs.lengths[:, 0]


@pytest.mark.parametrize("copy", [0, 1])
@pytest.mark.parametrize("short", [0, 0.3])
@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_every_piece_is_used_once_and_separators_between_documents_only(input_format, short, copy):
    shard = shard_of(*MIXED)
    changes = {"input_format": input_format, "short_seq_prob": short, "copy": copy}
    ids = add_separators(shard, PretrainingDataConfig(input_format=input_format), SEP).ids
    pieces = []
    for start, length in zip(*runs_of(shard, **changes), strict=True):
        run = ids[start : start + length]
        documents = documents_of(shard, run[run != SEP])
        assert 0 < len(run) <= 21 and run[0] != SEP and run[-1] != SEP
        assert (run == SEP).sum() == documents[-1] - documents[0]
        between = np.flatnonzero(run == SEP)
        np.testing.assert_array_equal(
            documents_of(shard, run[between + 1]), documents_of(shard, run[between - 1]) + 1
        )
        pieces.extend(run[run != SEP].tolist())
    assert pieces == shard.ids.tolist()


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_a_run_closes_before_the_sentence_that_no_longer_fits(input_format):
    _, lengths = runs_of(shard_of([8, 8, 5, 1, 19, 2, 20, 1, 1]), input_format=input_format)
    assert lengths.tolist() == [21, 20, 2, 21, 1]


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_long_sentences_are_cut_at_word_starts_and_lose_nothing(input_format):
    starts_word = np.arange(SEP + 1) % 4 == 0
    starts, lengths = runs_of(shard_of([50, 3]), starts=starts_word, input_format=input_format)
    assert starts.tolist() == [0, 20, 40] and lengths.tolist() == [20, 20, 13]


# Packing


KEYS = subkeys(key_of("packing"), np.arange(500))


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
    _, lengths = truncate_pairs(np.zeros_like(pairs), pairs, KEYS, 41)
    assert lengths.tolist() == [_reference_lengths(first, second, 41) for first, second in pairs]


def _reference_lengths(first, second, budget):
    while first + second > budget:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]
