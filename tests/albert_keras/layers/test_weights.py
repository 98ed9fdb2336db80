import numpy as np
import tensorflow as tf

from albert_keras.layers.weights import NamedLayerNorm


def test_normalisation_sees_what_bfloat16_would_round_away():
    layer = NamedLayerNorm("part/LayerNorm", 4, dtype="mixed_bfloat16")
    inputs = 1000.0 + tf.constant([[1.0, 2.0, 3.0, 4.0]]) / 4  # bfloat16: 1000 four times
    outputs = layer(inputs)
    assert outputs.dtype == tf.bfloat16
    expected = [[-1.3416408, -0.4472136, 0.4472136, 1.3416408]]
    np.testing.assert_allclose(tf.cast(outputs, tf.float32), expected, rtol=0.005)
