"""Padding and positions that nobody reads are left out, and nothing else changes."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.models.encoder import AlbertEncoder
from tests.albert_keras.models.test_encoder import (
    MASKS,
    features,
    small_encoder,
)

UNEVEN = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0, 0]])
ARCHITECTURES = {
    "shared": {},
    "unshared": {"sharing": "none"},
    "groups": {"num_hidden_layers": 2, "num_hidden_groups": 2, "inner_group_num": 2},
}


def uneven_features():
    return features(batch=3) | {"input_mask": UNEVEN}


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
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5, err_msg=weight.name)


def assert_same_training(encoder, other, inputs, **kwargs):
    """Compares outputs at real positions and the gradients of all weights."""
    expected, expected_gradients = outputs_and_gradients(encoder, inputs, **kwargs)
    found, gradients = outputs_and_gradients(other, inputs, **kwargs)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert_same_gradients(encoder, gradients, expected_gradients)


@pytest.mark.parametrize("mask", MASKS)
def test_skipping_padding_changes_neither_outputs_nor_gradients_under_any_mask(mask):
    assert_same_training(small_encoder(), small_encoder(skips_padding=True), features(mask))


@pytest.mark.parametrize(
    "architecture, recompute", [(name, False) for name in ARCHITECTURES] + [("groups", True)]
)
def test_skipping_padding_changes_nothing_in_any_architecture(architecture, recompute):
    changes = ARCHITECTURES[architecture]
    skipping = small_encoder(recompute=recompute, skips_padding=True, **changes)
    assert_same_training(small_encoder(**changes), skipping, uneven_features())


@pytest.mark.parametrize("recompute", [False, True])
def test_skipping_padding_leaves_the_masks_of_dropout_alone(recompute):
    rates = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    dropout_seed = DropoutSeed(tf.constant(3, tf.int64), tf.constant(8, tf.int64))
    skipping = small_encoder(skips_padding=True, recompute=recompute, **rates)
    assert_same_training(
        small_encoder(**rates), skipping, uneven_features(), dropout_seed=dropout_seed
    )


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


@pytest.mark.parametrize(
    "architecture, recompute, skips_padding",
    [
        ("shared", False, False),
        ("unshared", False, False),
        ("groups", True, True),
    ],
)
def test_some_positions_are_as_in_the_full_output(architecture, recompute, skips_padding):
    changes, inputs = ARCHITECTURES[architecture], uneven_features()
    positions = tf.constant([[0, 6, 2], [0, 1, 1], [0, 4, 3]])

    def train(encoder, **kwargs):
        with tf.GradientTape() as tape:
            outputs = encoder(inputs, training=True, **kwargs)
            sequence, pooled = outputs["sequence_output"], outputs["pooled_output"]
            if not kwargs:
                sequence = tf.gather(sequence, positions, batch_dims=1)
            loss = weighted_sum(sequence) + weighted_sum(pooled)
        return sequence, pooled, tape.gradient(loss, encoder.trainable_variables)

    full = small_encoder(**changes)
    some = small_encoder(recompute=recompute, skips_padding=skips_padding, **changes)
    *expected, expected_gradients = train(full)
    *found, gradients = train(some, positions=positions)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert_same_gradients(full, gradients, expected_gradients)


def encoder_of_zeros(name, **changes):
    """Builds a large encoder in little time: nothing is drawn."""
    return AlbertEncoder(AlbertConfig.from_name(name, initializer_range=0, **changes))


@pytest.mark.parametrize(
    "embedding_size, sharing, millions",
    [
        (64, "all", 10),
        (128, "all", 12),
        (768, "all", 31),
        (128, "none", 89),
        (768, "none", 108),
        (128, "attention", 64),
        (128, "ffn", 38),
        (768, "attention", 83),
        (768, "ffn", 57),
    ],
)
def test_base_size_has_the_parameters_of_the_papers_tables_3_and_4(
    embedding_size, sharing, millions
):
    encoder = encoder_of_zeros("albert-base", embedding_size=embedding_size, sharing=sharing)
    # The paper's unshared rows fit only without the pooler, the others only with it.
    pooler = encoder.pooler.count_params() if sharing == "none" else 0
    assert round((encoder.count_params() - pooler) / 1e6) == millions
