import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.feed_forward import FeedForwardBlock
from albert_keras.layers.rows import Rows


def test_widens_activates_narrows_adds_and_normalises():
    config = AlbertConfig(
        hidden_size=2, num_attention_heads=1, intermediate_size=1, hidden_act="relu"
    )
    block = FeedForwardBlock(config, "group_0/inner_group_0")
    block.intermediate.set_weights([np.array([[1.0], [1.0]]), np.array([-1.0])])
    block.projection.set_weights([np.array([[2.0, 0.0]]), np.array([0.0, 0.5])])
    block.normalization.set_weights([np.array([3.0, 5.0]), np.array([0.0, 1.0])])
    # [1, 2] -> relu(1 + 2 - 1) = 2 -> [4, 0.5] -> sum [5, 2.5] -> [1, -1] -> scaled and shifted
    rows = Rows(tf.ones((1, 1)))
    np.testing.assert_allclose(block(tf.constant([[1.0, 2.0]]), rows), [[3, -4]], rtol=1e-6)
