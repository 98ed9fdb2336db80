"""Padding and positions that nobody reads are left out, and nothing else changes."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.keras_versions import name_of
from albert_keras.layers.dropout import DropoutSeed
from tests.albert_keras.models.test_encoder import SHAPES, features, small_encoder


def outputs_and_gradients(encoder, inputs, dropout_seed=None):
    """Trains at the real positions; returns what came out there, and the gradients."""
    is_real = tf.cast(inputs["input_mask"], tf.float32)[..., None]  # [B, S, 1]
    with tf.GradientTape() as tape:
        outputs = encoder(inputs, training=True, dropout_seed=dropout_seed)
        sequence = tf.cast(outputs["sequence_output"], tf.float32) * is_real
        pooled = tf.cast(outputs["pooled_output"], tf.float32) * is_real[:, 0]
        loss = weighted_sum(sequence) + weighted_sum(pooled)
    gradients = tape.gradient(loss, encoder.trainable_variables)
    return [sequence, pooled], gradients


def weighted_sum(outputs):
    """Gives each output a weight of its own, or mistakes would cancel out."""
    return tf.reduce_sum(outputs * tf.random.stateless_normal(outputs.shape, seed=(0, 1)))


def assert_same_gradients(encoder, found, expected):
    for weight, left, right in zip(encoder.trainable_variables, found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5, err_msg=name_of(weight))


def assert_same_training(encoder, other, inputs, **kwargs):
    """Compares outputs at real positions and the gradients of all weights."""
    expected, expected_gradients = outputs_and_gradients(encoder, inputs, **kwargs)
    found, gradients = outputs_and_gradients(other, inputs, **kwargs)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert_same_gradients(encoder, gradients, expected_gradients)


@pytest.mark.parametrize("shape, recompute", [("unshared", False), ("groups", True)])
def test_skipping_padding_changes_neither_outputs_nor_gradients(shape, recompute):
    skipping = small_encoder(recompute=recompute, skips_padding=True, **SHAPES[shape])
    assert_same_training(small_encoder(**SHAPES[shape]), skipping, features())


def test_skipping_padding_leaves_the_masks_of_dropout_alone():
    rates = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    dropout_seed = DropoutSeed(tf.constant(3, tf.int64), tf.constant(8, tf.int64))
    skipping = small_encoder(skips_padding=True, **rates)
    assert_same_training(small_encoder(**rates), skipping, features(), dropout_seed=dropout_seed)


def test_what_no_sequence_reaches_is_cut_off_in_training_and_comes_back_as_zeros():
    rng, changes = np.random.default_rng(0), {"max_position_embeddings": 80}
    inputs = {
        "input_ids": rng.integers(0, 50, (2, 80)),
        "input_mask": (np.arange(80) < [[50], [20]]).astype(int),
        "segment_ids": rng.integers(0, 2, (2, 80)),
    }
    encoder, skipping = small_encoder(**changes), small_encoder(skips_padding=True, **changes)
    assert_same_training(encoder, skipping, inputs)
    trained = skipping(inputs, training=True, return_all_layers=True)
    for output in (trained["sequence_output"], *trained["layer_outputs"]):
        assert output.shape == (2, 80, 8)
        assert not output[:, 64:].numpy().any()


@pytest.mark.parametrize("shape, saves", [("unshared", False), ("groups", True)])
def test_some_positions_are_as_in_the_full_output(shape, saves):
    changes = SHAPES[shape]
    inputs = {name: values[[0, 1, 3]] for name, values in features().items()}  # with [CLS]
    positions = tf.constant([[0, 6, 2], [0, 1, 1], [0, 2, 6]])

    def train(encoder, **kwargs):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True, **kwargs)
            sequence, pooled = outputs["sequence_output"], outputs["pooled_output"]
            if not kwargs:
                sequence = tf.gather(sequence, positions, batch_dims=1)
            loss = weighted_sum(sequence) + weighted_sum(pooled)
        return sequence, pooled, tape.gradient(loss, encoder.trainable_variables)

    full = small_encoder(**changes)
    some = small_encoder(recompute=saves, skips_padding=saves, **changes)
    *expected, expected_gradients = train(full)
    *found, gradients = train(some, positions=positions)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert_same_gradients(full, gradients, expected_gradients)
