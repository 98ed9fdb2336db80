"""The fused functions against plain formulas, which TensorFlow derives in float64."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.activations import ACTIVATIONS
from albert_keras.layers.fused import (
    activated_product,
    add_layer_norm,
    bias_activation,
    dense,
    layer_norm,
    masked_softmax,
)
from albert_keras.layers.kernels import inference

PLAIN = {
    "gelu": lambda inputs: tf.nn.gelu(inputs, approximate=True),
    "gelu_erf": lambda inputs: tf.nn.gelu(inputs, approximate=False),
    "relu": lambda inputs: tf.where(inputs > 0, inputs, 0.0),
    "tanh": lambda inputs: 1.0 - 2.0 / (tf.exp(2.0 * inputs) + 1.0),
    "silu": lambda inputs: inputs / (1.0 + tf.exp(-inputs)),
    "linear": lambda inputs: inputs,
}
#: bfloat16 keeps eight binary digits; rounding loses at most half the last.
ROUNDING = 2.0**-8


def random(*shape, seed, dtype="float32"):
    return tf.cast(tf.random.stateless_normal(shape, seed=(0, seed)), dtype)


def value_and_gradients(function, arguments, weights):
    """Returns the value, and the gradients of its sum under some weights, as float64 arrays."""
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = function(*arguments)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float64) * tf.cast(weights, tf.float64))
    gradients = tape.gradient(loss, arguments)
    assert [gradient.dtype for gradient in gradients] == [given.dtype for given in arguments]
    return [tf.cast(tensor, tf.float64).numpy() for tensor in (outputs, *gradients)]


def assert_as_plain(function, plain, arguments, dtype, is_rounded_once=True):
    """Compares with the same formula of the same (rounded) numbers in float64."""
    exact = [tf.cast(argument, tf.float64) for argument in arguments]
    weights = random(*plain(*exact).shape, seed=99, dtype=dtype)
    ours = value_and_gradients(function, arguments, weights)
    expected = value_and_gradients(plain, exact, weights)
    if dtype == "float32":
        for found, wanted in zip(ours, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=2e-6)
        return
    if is_rounded_once:
        np.testing.assert_allclose(ours[0], expected[0], rtol=ROUNDING, atol=2e-6)
    # Gradients are made of tensors and summands that have been rounded before.
    for found, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=4 * ROUNDING * np.abs(wanted).max())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_bias_and_activation_in_float32(name, kernels):
    arguments = [2 * random(4, 6, seed=1), random(6, seed=2)]
    assert_as_plain(
        lambda rows, bias: bias_activation(rows, bias, name),
        lambda rows, bias: PLAIN[name](rows + bias),
        arguments,
        "float32",
    )


@pytest.mark.parametrize("name", ["gelu", "relu"])
def test_bias_and_activation_in_bfloat16_compute_in_float32(name, kernels):
    bias = tf.constant([0.3, -0.7, 0.0, 1.0, 10.1, -2.0])
    rows = random(4, 6, seed=1, dtype="bfloat16")
    # Of the first row only what bfloat16 cannot hold of the bias remains.
    rows = tf.concat([tf.cast(-bias[None], tf.bfloat16), rows], axis=0)
    assert_as_plain(
        lambda rows, bias: bias_activation(rows, bias, name),
        lambda rows, bias: PLAIN[name](rows + bias),
        [rows, bias],
        "bfloat16",
    )


@pytest.mark.parametrize("name", ["gelu", "relu"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_activation_and_product(dtype, name, kernels):
    assert_as_plain(
        lambda *arguments: activated_product(*arguments, name),
        lambda rows, bias, kernel: PLAIN[name](rows + bias) @ kernel,
        [
            2 * random(4, 6, seed=1, dtype=dtype),
            random(6, seed=2),
            random(6, 3, seed=3, dtype=dtype),
        ],
        dtype,
        is_rounded_once=False,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_product_and_bias(dtype, kernels):
    rows, kernel = random(6, 5, seed=1, dtype=dtype), random(5, 4, seed=3, dtype=dtype)
    assert_as_plain(
        dense,
        lambda rows, kernel, bias: rows @ kernel + bias,
        [rows, kernel, random(4, seed=4)],
        dtype,
        is_rounded_once=False,
    )


def plain_layer_norm(rows, gamma, beta):
    mean, variance = tf.nn.moments(rows, axes=-1, keepdims=True)
    return (rows - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_layer_norm(dtype, kernels):
    arguments = [random(5, 6, seed=1, dtype=dtype), random(6, seed=2), random(6, seed=3)]
    assert_as_plain(
        lambda *arguments: layer_norm(*arguments, dtype), plain_layer_norm, arguments, dtype
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_adding_and_normalising(dtype, kernels):
    arguments = [random(5, 6, seed=seed, dtype=dtype) for seed in (1, 2)]
    arguments += [random(6, seed=seed) for seed in (3, 4, 5)]
    assert_as_plain(
        add_layer_norm,
        lambda rows, added, bias, *rest: plain_layer_norm(rows + added + bias, *rest),
        arguments,
        dtype,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_masked_softmax(dtype, kernels):
    mask = tf.constant([[0.0, 0, 0, 0], [0, 0, -10_000, -10_000]])[:, None, None, :]
    assert_as_plain(
        lambda scores: masked_softmax(scores, mask, 0.5),
        lambda scores: tf.nn.softmax(0.5 * scores + tf.cast(mask, tf.float64)),
        [4 * random(2, 3, 4, 4, seed=1, dtype=dtype)],
        dtype,
    )


def test_plain_operations_for_inference_give_the_same():
    rows, added, bias, kernel = (
        random(*shape, seed=seed) for seed, shape in enumerate([(4, 6), (4, 6), (6,), (6, 3)])
    )
    scores, mask = 4 * random(1, 2, 3, 3, seed=4), tf.constant([[[[0.0, -10_000, 0.0]]]])

    def run():
        return [
            *(bias_activation(rows, bias, name) for name in ACTIVATIONS),
            *(activated_product(rows, bias, kernel, name) for name in ACTIVATIONS),
            layer_norm(rows, bias, bias, "float32"),
            add_layer_norm(rows, added, bias, bias, bias),
            masked_softmax(scores, mask, 0.5),
        ]

    with inference():
        found = run()
    for left, right in zip(found, run(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=2e-6)
