"""Sentences are gathered into runs of one segment, within documents or across them."""

import numpy as np
import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.instances.segments import add_separators
from tests.data_pipeline.instances.test_segments import (
    MIXED,
    SEP,
    documents_of,
    pairs_of,
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
def test_a_run_closes_before_the_sentence_that_no_longer_fits(input_format):
    _, lengths = runs_of(shard_of([8, 8, 5, 1, 19, 2, 20, 1, 1]), input_format=input_format)
    assert lengths.tolist() == [21, 20, 2, 21, 1]


def test_runs_go_on_across_documents_with_one_separator_between():
    shard = add_separators(shard_of([5, 3], [1]), FULL, SEP)
    assert shard.ids.tolist() == [*range(8), SEP, 8, SEP]
    assert shard.begins.tolist() == [0, 5, 9] and shard.ends.tolist() == [5, 8, 10]
    starts, lengths = runs_of(shard_of([5, 3], [1]), input_format="full-sentences")
    assert (starts.tolist(), lengths.tolist()) in (([0], [10]), ([0, 9], [8, 1]))


def test_each_copy_begins_at_another_document():
    shard = shard_of(*[[10]] * 5)  # two documents and [SEP] fill a run
    cuts = [
        tuple(runs_of(shard, copy=copy, input_format="full-sentences")[0].tolist())
        for copy in range(5)
    ]
    # Begun at document 1 or 3 a run ends before it; at 0, 2 or 4 one would have ended there anyway.
    assert sorted(cuts) == sorted([(0, 11, 33), (0, 22, 33), *[(0, 22, 44)] * 3])


@pytest.mark.parametrize("input_format", SINGLE_FORMATS)
def test_long_sentences_are_cut_at_word_starts_and_lose_nothing(input_format):
    starts_word = np.arange(SEP + 1) % 4 == 0
    starts, lengths = runs_of(shard_of([50, 3]), starts=starts_word, input_format=input_format)
    assert starts.tolist() == [0, 20, 40] and lengths.tolist() == [20, 20, 13]
