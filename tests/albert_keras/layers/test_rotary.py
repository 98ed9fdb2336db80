"""Rotary positions: attention that depends on distances, without a table."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.kernels import compiled_kernels, inference
from albert_keras.layers.rotary import rotate
from tests.albert_keras.models.test_encoder import small_encoder


def vectors(length=5, size=6):
    rng = np.random.default_rng(0)
    return tf.constant(rng.normal(size=(2, 3, length, size)), tf.float32)


def test_pairs_are_rotated_by_angles_that_shrink_with_the_dimension():
    rows = vectors().numpy()
    found = rotate(tf.constant(rows)).numpy()
    angles = np.arange(5)[:, None] * 10_000.0 ** -(np.arange(3) / 3)  # [S, D / 2]
    pairs = (rows[..., 0::2] + 1j * rows[..., 1::2]) * np.exp(1j * angles)
    expected = np.stack([pairs.real, pairs.imag], axis=-1).reshape(rows.shape)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_array_equal(found[:, :, 0], rows[:, :, 0])  # position 0 stays as it is


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


def test_tokens_are_read_alike_wherever_they_are():
    encoder = small_encoder(position_embedding="rotary")
    alone = encoder({"input_ids": [[5, 6, 7]]})["sequence_output"]
    padded = encoder({"input_ids": [[9, 9, 5, 6, 7]], "input_mask": [[0, 0, 1, 1, 1]]})
    np.testing.assert_allclose(padded["sequence_output"][:, 2:], alone, atol=1e-5)
    turned = encoder({"input_ids": [[7, 6, 5]]})["sequence_output"][:, ::-1]
    assert np.abs(turned - alone).max() > 1e-4
