"""Sentences are gathered into runs of one segment, within documents or across them."""

import numpy as np
import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.instances.segments import add_separators, split_long_sentences
from tests.data_pipeline.instances.test_segments import (
    MIXED,
    SEP,
    STARTS,
    documents_of,
    pairs_of,
    rows_of,
    shard_of,
)

SINGLE_FORMATS = ("full-sentences", "doc-sentences")
ROOM = 21  # of records of 23 pieces
FULL = PretrainingDataConfig(max_seq_length=23, input_format="full-sentences")


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
        assert 0 < len(run) <= ROOM and run[0] != SEP and run[-1] != SEP
        assert (run == SEP).sum() == documents[-1] - documents[0]
        between = np.flatnonzero(run == SEP)
        np.testing.assert_array_equal(
            documents_of(shard, run[between + 1]), documents_of(shard, run[between - 1]) + 1
        )
        pieces.extend(run[run != SEP].tolist())
    assert pieces == shard.ids.tolist()


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_there_is_no_second_segment_and_no_label(input_format):
    pairs = pairs_of(shard_of(*MIXED), input_format=input_format)
    assert not pairs.lengths[:, 1].any() and not pairs.labels.any() and pairs.skipped == 0


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_a_run_closes_before_the_sentence_that_no_longer_fits(input_format):
    _, lengths = runs_of(shard_of([8, 8, 5, 1, 19, 2, 20, 1, 1]), input_format=input_format)
    assert lengths.tolist() == [21, 20, 2, 21, 1]


def test_runs_go_on_across_documents_with_one_separator_between():
    shard = add_separators(shard_of([5, 3], [1]), FULL, SEP)
    assert shard.ids.tolist() == [*range(8), SEP, 8, SEP]
    assert shard.begins.tolist() == [0, 5, 9] and shard.ends.tolist() == [5, 8, 10]
    starts, lengths = runs_of(shard_of([5, 3], [1]), input_format="full-sentences")
    assert (starts.tolist(), lengths.tolist()) in (([0], [10]), ([0, 9], [8, 1]))


@pytest.mark.parametrize("input_format", ["segment-pair", "sentence-pair", "doc-sentences"])
def test_other_formats_need_no_separators(input_format):
    shard = shard_of([5, 3], [1])
    assert add_separators(shard, PretrainingDataConfig(input_format=input_format), SEP) is shard


def test_runs_within_documents_never_go_on_to_the_next():
    starts, lengths = runs_of(shard_of([5, 3], [1], [30], [4] * 6), input_format="doc-sentences")
    assert starts.tolist() == [0, 8, 9, 30, 39, 59] and lengths.tolist() == [8, 1, 21, 9, 20, 4]


def test_each_copy_begins_at_another_document():
    shard = shard_of(*[[10]] * 5)  # two documents and [SEP] fill a run
    cuts = [
        tuple(runs_of(shard, copy=copy, input_format="full-sentences")[0].tolist())
        for copy in range(5)
    ]
    # Begun at document 1 or 3 a run ends before it; at 0, 2 or 4 one would have ended there anyway.
    assert sorted(cuts) == sorted([(0, 11, 33), (0, 22, 33), *[(0, 22, 44)] * 3])


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_one_document_is_a_shard(input_format):
    pairs = pairs_of(shard_of([7] * 30), copy=3, input_format=input_format)
    assert rows_of(pairs) == [(start, 0, 21, 0) for start in range(0, 210, 21)]


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_long_sentences_are_cut_at_word_starts_and_lose_nothing(input_format):
    starts_word = np.arange(SEP + 1) % 4 == 0
    starts, lengths = runs_of(shard_of([50, 3]), starts=starts_word, input_format=input_format)
    assert starts.tolist() == [0, 20, 40] and lengths.tolist() == [20, 20, 13]


def test_a_word_that_is_too_long_is_cut_where_it_must_be():
    starts_word = np.zeros(SEP + 1, bool)
    starts_word[[0, 2]] = True
    starts, lengths = runs_of(shard_of([50]), starts=starts_word, input_format="doc-sentences")
    assert starts.tolist() == [0, 2, 23, 44] and lengths.tolist() == [2, 21, 21, 6]


def test_parts_of_long_sentences_stay_in_their_documents():
    shard = split_long_sentences(shard_of([5, 25], [45, 5], [5]), STARTS, 20)
    assert shard.first_sentences.tolist() == [0, 3, 7, 8]
    assert (shard.ends - shard.begins).tolist() == [5, 20, 5, 20, 20, 5, 5, 5]
    assert shard.begins.tolist() == [0, 5, 25, 30, 50, 70, 75, 80]


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_short_runs_are_as_frequent_as_asked(input_format):
    _, lengths = runs_of(shard_of([1] * 60_000), input_format=input_format, short_seq_prob=0.3)
    # A short target is even over 2..21, and only 21 of these is full length.
    assert (lengths < ROOM).mean() == pytest.approx(0.3 * 19 / 20, abs=0.03)


def test_a_short_run_holds_one_sentence_at_least():
    _, lengths = runs_of(shard_of([15] * 50), input_format="doc-sentences", short_seq_prob=1)
    assert lengths.tolist() == [15] * 50


def test_keys_are_those_of_the_document_that_a_run_begins_in():
    documents = [[15, 15]] * 20  # one sentence a run, whatever document comes before
    whole = pairs_of(shard_of(*documents), input_format="full-sentences")
    fewer = pairs_of(shard_of(*documents[:7]), input_format="full-sentences")
    np.testing.assert_array_equal(whole.keys[:14], fewer.keys)
