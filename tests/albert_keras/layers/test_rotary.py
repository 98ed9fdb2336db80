"""Rotary positions: attention that depends on distances, without a table."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.kernels import compiled_kernels, inference
from albert_keras.layers.rotary import rotate


def vectors(length=5, size=6):
    rng = np.random.default_rng(0)
    return tf.constant(rng.normal(size=(2, 3, length, size)), tf.float32)


def test_given_positions_are_those_of_the_whole_sequence():
    positions = tf.constant([[4, 0], [1, 1]])
    rows = vectors()
    chosen = tf.gather(rows, positions[:, None].numpy().repeat(3, 1), batch_dims=2)
    whole = tf.gather(rotate(rows), positions[:, None].numpy().repeat(3, 1), batch_dims=2)
    np.testing.assert_allclose(rotate(chosen, positions), whole, atol=1e-6)


@pytest.mark.parametrize("compiles", [False, True])
def test_the_gradient_is_that_of_the_formula(compiles):
    rows, weights = vectors(), vectors()[::-1]

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(rows)
            total = tf.reduce_sum(rotate(rows) * weights)
        return tape.gradient(total, rows)

    with inference():  # plain operations, differentiated by TensorFlow
        expected = gradient()
    with compiled_kernels(compiles):
        found = tf.function(gradient, autograph=False)()
    np.testing.assert_allclose(found, expected, atol=1e-5)
