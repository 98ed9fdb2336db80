"""A longer table of positions repeats the trained ones, and everything else stays."""

import dataclasses

import numpy as np
import pytest

from albert_keras.formats.open_model import open_model
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.position_extension import copied_positions
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

TABLE = "bert/embeddings/position_embeddings"


def test_neighbours_stay_neighbours_and_the_ends_are_not_repeated():
    assert copied_positions(5, 11).tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3]
    assert copied_positions(5, 8, offset=2).tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 4, 5]
    assert copied_positions(5, 4).tolist() == [0, 1, 2, 3]


def test_weights_of_a_run_are_opened_for_longer_sequences(tiny_run):
    # The run has 64 positions, and records of 32 tokens.
    origin = open_model(tiny_run)
    longer = origin.lengthened(200)
    old, new = AlbertEncoder(origin.albert_config), AlbertEncoder(longer.albert_config)
    origin.load(old)
    longer.load(new)
    old, new = ({n: w.numpy() for n, w in weight_names(e).items()} for e in (old, new))
    np.testing.assert_array_equal(new.pop(TABLE), old.pop(TABLE)[copied_positions(32, 200)])
    assert new.keys() == old.keys()
    for name, values in old.items():
        np.testing.assert_array_equal(new[name], values)
    assert origin.lengthened(None) is origin


def test_positions_that_were_not_trained_are_copied_without_more_of_them(tiny_run):
    origin = open_model(tiny_run)
    table = origin.lengthened(64).tensors.read(TABLE)
    np.testing.assert_array_equal(table, origin.tensors.read(TABLE)[copied_positions(32, 64)])
    trained = dataclasses.replace(origin, max_seq_length=64)
    assert trained.lengthened(64) is trained


def test_a_table_does_not_become_shorter(tiny_run):
    with pytest.raises(InputError, match="as large as in the weights of .*, 64. .*: 63"):
        open_model(tiny_run).lengthened(63)
