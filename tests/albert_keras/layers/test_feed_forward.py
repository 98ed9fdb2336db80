"""The feed-forward block where the rows of its inner product would share cache lines."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.feed_forward import FeedForwardBlock
from albert_keras.layers.rows import Rows

SIZE = 8


def block(inner_size):
    config = AlbertConfig.from_name(
        "albert-tiny", hidden_size=SIZE, num_attention_heads=2, intermediate_size=inner_size
    )
    return FeedForwardBlock(config, "group_0/inner_group_0", dtype="float32")


def used_twice(block, together):
    """Returns the output of two uses of a block, and the gradients of its weights."""
    hidden = tf.random.stateless_normal((6, SIZE), seed=(0, 1))
    rows = Rows(tf.ones((2, 3), tf.int32))
    with tf.GradientTape() as tape:
        for weights in block.for_each_use(2) if together else [None, None]:
            hidden = block(hidden, rows, weights=weights)
        loss = tf.reduce_sum(hidden * tf.range(float(SIZE)))
    return [hidden, *tape.gradient(loss, block.trainable_variables)]


def test_units_without_weights_change_neither_outputs_nor_gradients():
    shared = block(1024)
    alone = used_twice(shared, together=False)
    for found, expected in zip(used_twice(shared, together=True), alone, strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("inner_size", "uses", "width"), [(1024, 2, 1040), (1024, 1, 1024), (96, 2, 96)]
)
def test_only_weights_used_several_times_are_widened(inner_size, uses, width):
    weights = block(inner_size).for_each_use(uses)[0]
    assert weights.inner_kernel.shape == (SIZE, width)
    assert weights.inner_bias.shape == (width,) and weights.kernel.shape == (width, SIZE)
