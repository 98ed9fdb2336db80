"""The product of a layer against TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.fused import dense
from albert_keras.layers.kernels import compiled_kernels


def random(*shape, seed):
    return tf.random.stateless_normal(shape, seed=(0, seed))


def value_and_gradients(function, *arguments):
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = function(*arguments)
        # Other weights for each output, or the gradient of a sum would hide wrong places.
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * random(*outputs.shape, seed=9))
    return [outputs, *tape.gradient(loss, arguments)]


@pytest.mark.parametrize("is_compiled", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("bfloat16", 2**-7)])
def test_value_and_gradients_are_tensorflows(dtype, tolerance, is_compiled):
    rows, kernel = (tf.cast(random(*s, seed=3), dtype) for s in ((6, 5), (5, 4)))
    arguments = rows, kernel, random(4, seed=4)
    with compiled_kernels(is_compiled):
        ours = value_and_gradients(dense, *arguments)
    exact = [tf.cast(argument, tf.float32) for argument in arguments]
    expected = value_and_gradients(lambda rows, kernel, bias: rows @ kernel + bias, *exact)
    assert [tensor.dtype for tensor in ours] == [dtype, dtype, dtype, tf.float32]
    for found, wanted in zip(ours, expected, strict=True):
        found = tf.cast(found, tf.float32)
        np.testing.assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max())
