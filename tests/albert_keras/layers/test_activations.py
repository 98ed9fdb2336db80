import numpy as np
import tensorflow as tf

from albert_keras.layers.activations import ACTIVATIONS


def test_gelu_is_the_tanh_form():
    inputs = tf.constant([-2, -1, -0.5, 0.5, 1, 2], tf.float32)
    expected = [-0.04540231, -0.15880801, -0.15428599, 0.34571401, 0.84119199, 1.95459769]
    np.testing.assert_allclose(ACTIVATIONS["gelu"](inputs), expected, atol=1e-6)


def test_gelu_erf_is_the_exact_form():
    np.testing.assert_allclose(ACTIVATIONS["gelu_erf"](tf.constant(1.0)), 0.84134475, atol=1e-6)
