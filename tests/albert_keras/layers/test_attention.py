import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.attention import SelfAttentionBlock, additive_mask

CONFIG = AlbertConfig(hidden_size=8, num_attention_heads=2, initializer_range=0.5)


def block(dtype="float32"):
    return SelfAttentionBlock(CONFIG, "group_0/inner_group_0", dtype=dtype)


def test_padding_is_marked_with_minus_ten_thousand():
    mask = additive_mask(tf.constant([[1, 0, 1]]))
    assert mask.shape == (1, 1, 1, 3)
    np.testing.assert_array_equal(mask[0, 0, 0], [0, -10_000, 0])


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_what_stands_at_padding_changes_nothing_elsewhere(dtype):
    hidden = tf.random.stateless_normal((1, 4, 8), seed=(0, 1))
    changed = hidden + tf.constant([0.0, 0.0, 5.0, 0.0])[None, :, None]
    mask = additive_mask(tf.constant([[1, 1, 0, 1]]))
    layer = block(dtype)
    before, after = (tf.cast(layer(x, mask), tf.float32).numpy() for x in (hidden, changed))
    np.testing.assert_array_equal(before[:, [0, 1, 3]], after[:, [0, 1, 3]])
    assert not np.array_equal(before[:, 2], after[:, 2])


def test_the_order_of_pieces_does_not_matter_to_attention():
    hidden = tf.random.stateless_normal((2, 5, 8), seed=(0, 1))
    mask = additive_mask(tf.ones((2, 5)))
    layer = block()
    np.testing.assert_allclose(
        layer(hidden, mask)[:, ::-1], layer(hidden[:, ::-1], mask), atol=1e-5
    )


def test_three_kernels_stay_three():
    kernels = [w.name for w in block().weights if "/self/" in w.name and "kernel" in w.name]
    assert kernels == [
        f"group_0/inner_group_0/attention_1/self/{part}/kernel:0"
        for part in ("query", "key", "value")
    ]
