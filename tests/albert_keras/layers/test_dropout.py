"""Dropout drawn from seed, step and row is the same however a batch is split."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import Dropout, DropoutSeed
from albert_keras.models.text_classifiers import AlbertForClassification


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


def test_a_layer_alone_draws_its_masks():
    layer, inputs = Dropout(0.5, 3), tf.ones([4, 50])
    first, second = layer(inputs, training=True), layer(inputs, training=True)
    assert set(np.unique(first)) == {0.0, 2.0} and np.any(first != second)


@pytest.mark.parametrize("jit_compile, recompute", [("kernels", True), ("step", False)])
def test_masks_of_a_model_follow_the_seed_and_differ_in_each_step_of_each_fit(
    jit_compile, recompute
):
    config = AlbertConfig.from_name("albert-tiny", vocab_size=50, hidden_dropout_prob=0.3)
    features = {"input_ids": np.random.default_rng(0).integers(5, 50, (4, 8))}

    def losses():
        """Returns the losses of steps that change no weight."""
        keras.utils.set_random_seed(7)
        model = AlbertForClassification(config, labels=2, recompute=recompute)
        found = []
        for _ in range(2):
            model.compile(keras.optimizers.SGD(0.0), jit_compile=jit_compile)
            found += model.fit(features, np.array([0, 1, 0, 1]), epochs=2, verbose=0).history[
                "loss"
            ]
        return found

    found = losses()
    assert len(set(found)) == 4
    assert losses() == found
