"""What is computed again gives the same gradients, on a TPU behind a barrier."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.recomputed import _behind_a_barrier, recomputed


@pytest.mark.parametrize("again", [recomputed, _behind_a_barrier])
def test_gradients_are_those_of_the_function(again):
    kernel = tf.Variable(np.random.default_rng(0).normal(size=(5, 5)), dtype=tf.float32)
    bias = tf.Variable(tf.zeros(5))

    def block(inputs):
        return tf.tanh(tf.matmul(inputs, kernel) + bias)

    # Compiled: the barrier has no kernel for a CPU.
    @tf.function(jit_compile=True)
    def gradients(run, inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.square(run(run(inputs))))
        return tape.gradient(loss, [inputs, kernel, bias])

    inputs = tf.constant(np.random.default_rng(1).normal(size=(3, 5)), tf.float32)
    expected = gradients(block, inputs)
    for ours, others in zip(gradients(again(block), inputs), expected, strict=True):
        np.testing.assert_allclose(ours, others, rtol=1e-5, atol=1e-6)
