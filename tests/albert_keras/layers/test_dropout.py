"""Dropout drawn from seed, step and row is the same however a batch is split."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.dropout import Dropout, DropoutSeed


def draw(step, row, depth=0):
    return DropoutSeed(
        tf.constant(step, tf.int64), tf.constant(row, tf.int64), tf.constant(depth, tf.int64)
    )


@pytest.mark.parametrize("shape", [(8, 16, 32), (8, 3, 5), (8, 7)])
def test_rows_do_not_depend_on_those_they_are_drawn_with(shape):
    dropout = Dropout(0.3, seed=123_456_789)
    whole = dropout(tf.ones(shape), draw(5, 0), training=True)
    parts = [dropout(tf.ones((2, *shape[1:])), draw(5, row), training=True) for row in (0, 2, 4, 6)]
    np.testing.assert_array_equal(tf.concat(parts, 0), whole)


def test_another_step_depth_row_or_seed_drops_others():
    inputs = tf.ones((8, 200))
    dropout = Dropout(0.5, seed=1)
    first = dropout(inputs, draw(5, 0), training=True).numpy()
    for other in (draw(6, 0), draw(5, 8), draw(5, 0, depth=1)):
        assert (dropout(inputs, other, training=True).numpy() != first).any()
    assert (Dropout(0.5, seed=2)(inputs, draw(5, 0), training=True).numpy() != first).any()
    np.testing.assert_array_equal(dropout(inputs, draw(5, 0), training=True), first)
