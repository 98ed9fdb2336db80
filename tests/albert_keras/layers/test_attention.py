import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.attention import SelfAttentionBlock
from albert_keras.layers.rows import Rows

CONFIG = AlbertConfig(hidden_size=8, num_attention_heads=2, initializer_range=0.5)


def block(dtype="float32"):
    return SelfAttentionBlock(CONFIG, "group_0/inner_group_0", dtype=dtype)


def attend(layer, hidden, mask, **kwargs):
    rows = Rows(tf.constant(mask), **kwargs)
    return rows.to_batch(layer(rows.from_batch(hidden), rows))


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_what_stands_at_padding_changes_nothing_elsewhere(dtype):
    hidden = tf.random.stateless_normal((1, 4, 8), seed=(0, 1))
    changed = hidden + tf.constant([0.0, 0.0, 5.0, 0.0])[None, :, None]
    layer, mask = block(dtype), [[1, 1, 0, 1]]
    before, after = (tf.cast(attend(layer, x, mask), tf.float32).numpy() for x in (hidden, changed))
    np.testing.assert_array_equal(before[:, [0, 1, 3]], after[:, [0, 1, 3]])
    assert not np.array_equal(before[:, 2], after[:, 2])


@pytest.mark.parametrize("skips_padding", [False, True])
def test_some_positions_alone_are_as_among_all(skips_padding):
    hidden = tf.random.stateless_normal((2, 5, 8), seed=(0, 1))
    layer, positions = block(), tf.constant([[0, 3], [2, 2]])
    rows = Rows(tf.constant([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]]), skips_padding)
    flat = rows.from_batch(hidden)
    expected = tf.gather(rows.to_batch(layer(flat, rows)), positions, batch_dims=1)
    found = layer(flat, rows, positions=positions)
    np.testing.assert_allclose(tf.reshape(found, (2, 2, 8)), expected, atol=1e-6)
