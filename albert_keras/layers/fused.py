"""The operations of a block, each as one function with its gradient written out.

What lies between the matrix products computes in float32 whatever the dtype of its tensors, and
stores for the gradient only tensors of that dtype. Source of the idea: the fused kernels of
Megatron-LM (https://arxiv.org/abs/1909.08053).
"""

import functools

import tensorflow as tf

from albert_keras.layers.activations import ACTIVATIONS
from albert_keras.layers.kernels import (
    column_sums,
    differentiable,
    is_for_inference,
    is_on_cpu,
    kernel,
)


@differentiable
def dense(rows, kernel, bias):
    """Multiplies by a kernel and adds a bias, [N, M] x [M, K] + float32 [K] -> [N, K]."""

    def gradient(upstream):
        d_rows = tf.matmul(upstream, kernel, transpose_b=True)
        d_kernel = tf.matmul(rows, upstream, transpose_a=True)
        return d_rows, d_kernel, column_sums(upstream)

    return tf.nn.bias_add(tf.matmul(rows, kernel), tf.cast(bias, rows.dtype)), gradient


def bias_activation(rows, bias, name):
    """Adds a bias and applies one of `ACTIVATIONS`: [N, M] + float32 [M] -> [N, M].

    Only `rows`, the result of a product, is stored for the gradient.
    """
    if name == "gelu" and _joins_operations():
        return tf.nn.gelu(tf.nn.bias_add(rows, tf.cast(bias, rows.dtype)), approximate=True)
    forward, backward = _activation_kernels(name)

    @differentiable
    def run(rows, bias):
        def gradient(upstream):
            slopes, _ = backward(rows, bias, upstream)
            return slopes, column_sums(slopes)

        return forward(rows, bias), gradient

    return run(rows, bias)


def activated_product(rows, bias, kernel, name):
    """As `bias_activation`, then multiplies: ([N, I] + float32 [I]) x [I, H] -> [N, H].

    The result of the activation, the widest tensor of a block, is computed again for the gradient.
    """
    if is_for_inference():
        return tf.matmul(bias_activation(rows, bias, name), kernel)
    forward, backward = _activation_kernels(name)

    @differentiable
    def run(rows, bias, kernel):
        def gradient(upstream):
            d_active = tf.matmul(upstream, kernel, transpose_b=True)
            slopes, active = backward(rows, bias, d_active)
            d_kernel = tf.matmul(active, upstream, transpose_a=True)
            return slopes, column_sums(slopes), d_kernel

        return tf.matmul(forward(rows, bias), kernel), gradient

    return run(rows, bias, kernel)


@functools.cache
def _activation_kernels(name):
    activation = ACTIVATIONS[name]

    @kernel
    def forward(rows, bias):
        return tf.cast(activation(_float32(rows) + bias), rows.dtype)

    @kernel
    def backward(rows, bias, upstream):
        inputs = _float32(rows) + bias
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = activation(inputs)
        slopes = tape.gradient(outputs, inputs, output_gradients=_float32(upstream))
        return tf.cast(slopes, rows.dtype), tf.cast(outputs, rows.dtype)

    return forward, backward


def layer_norm(rows, gamma, beta, dtype, epsilon=1e-12):
    """Normalizes each row to mean 0 and variance 1, then scales and shifts it: [N, M] -> [N, M].

    Args:
        rows: float [N, M].
        gamma, beta: float32 [M].
        dtype: tf.DType or str. Of the result.
        epsilon: float. Added to the variance. 1e-12 is the value in the reference's graphs; the
            Keras default of 1e-3 would damp small vectors.
    """
    normalize, _ = _norm_kernels(epsilon)

    @differentiable
    def run(rows, gamma, beta):
        outputs, normal, scale = normalize(rows, gamma, beta, tf.zeros([], dtype))

        def gradient(upstream):
            d_rows, d_gamma = _normalize_backward(normal, scale, gamma, upstream)
            return tf.cast(d_rows, rows.dtype), column_sums(d_gamma), column_sums(upstream)

        return outputs, gradient

    return run(rows, gamma, beta)


def add_layer_norm(rows, added, bias, gamma, beta, epsilon=1e-12):
    """Adds the output of a block and its bias to the input of the block, and normalizes the sum.

    `rows`, the input, and `added`, the result of the last product, are [N, M] of one dtype, as the
    result is; `bias`, `gamma` and `beta` are float32 [M]. `epsilon` is as in `layer_norm`.
    """
    if _joins_operations():
        total = tf.nn.bias_add(added, tf.cast(bias, added.dtype)) + rows
        return layer_norm(total, gamma, beta, rows.dtype, epsilon)
    _, add_normalize = _norm_kernels(epsilon)

    @differentiable
    def run(rows, added, bias, gamma, beta):
        outputs, normal, scale = add_normalize(rows, added, bias, gamma, beta)

        def gradient(upstream):
            d_rows, d_gamma = _normalize_backward(normal, scale, gamma, upstream)
            sums = [column_sums(columns) for columns in (d_rows, d_gamma, upstream)]
            return d_rows, d_rows, *sums

        return outputs, gradient

    return run(rows, added, bias, gamma, beta)


def add_dropped(hidden, found, weights, dropout, rows, dropout_seed, training, epsilon):
    """Ends a block: adds the bias, applies dropout, then as `add_layer_norm`: -> [N, H].

    Args:
        hidden: float [N, H]. Input of the block.
        found: [N, H], same dtype. Result of the last product of the block.
        weights: BlockWeights.
        dropout, rows: The layer, and the Rows of the block.
        dropout_seed, training, epsilon: As in the call of the block and in `layer_norm`.
    """
    bias = weights.bias
    if training and dropout.rate:
        found = tf.nn.bias_add(found, tf.cast(bias, found.dtype))
        # Random numbers are sampled for whole sequences, whichever rows are computed.
        found = rows.from_batch(dropout(rows.to_batch(found), dropout_seed, training=training))
        bias = tf.zeros_like(bias)
    return add_layer_norm(hidden, found, bias, weights.gamma, weights.beta, epsilon)


@functools.cache
def _norm_kernels(epsilon):
    @kernel
    def normalize(rows, gamma, beta, like):
        return _normal_rows(_float32(rows), gamma, beta, like.dtype, epsilon)

    @kernel
    def add_normalize(rows, added, bias, gamma, beta):
        total = _float32(rows) + _float32(added) + bias
        return _normal_rows(total, gamma, beta, rows.dtype, epsilon)

    return normalize, add_normalize


def _normal_rows(rows, gamma, beta, dtype, epsilon):
    centred = rows - tf.reduce_mean(rows, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    scale = tf.math.rsqrt(variance + epsilon)  # [N, 1]
    normal = centred * scale
    return tf.cast(normal * gamma + beta, dtype), tf.cast(normal, dtype), scale


@kernel
def _normalize_backward(normal, scale, gamma, upstream):
    dtype, normal, upstream = normal.dtype, _float32(normal), _float32(upstream)
    slopes = upstream * gamma
    mean = tf.reduce_mean(slopes, -1, keepdims=True)
    along = tf.reduce_mean(slopes * normal, -1, keepdims=True)
    d_rows = scale * (slopes - mean - normal * along)
    return tf.cast(d_rows, dtype), tf.cast(upstream * normal, dtype)


def masked_softmax(scores, mask, scale):
    """Returns the softmax over the last axis of `scores * scale + mask`, in the dtype of `scores`.

    `scores` are float [B, heads, S, S], the mask is float32 [B, 1, 1, S]. Only the result is stored
    for the gradient.
    """
    if _joins_operations():
        return tf.nn.softmax(scores * tf.cast(scale, scores.dtype) + tf.cast(mask, scores.dtype))
    forward, backward = _softmax_kernels(scale)

    @differentiable
    def run(scores):
        weights = forward(scores, mask)
        return weights, lambda upstream: backward(weights, upstream)

    return run(scores)


@functools.cache
def _softmax_kernels(scale):
    @kernel
    def forward(scores, mask):
        return tf.cast(tf.nn.softmax(_float32(scores) * scale + mask), scores.dtype)

    @kernel
    def backward(weights, upstream):
        dtype, weights, upstream = weights.dtype, _float32(weights), _float32(upstream)
        along = tf.reduce_sum(weights * upstream, -1, keepdims=True)
        return tf.cast(scale * weights * (upstream - along), dtype)

    return forward, backward


def _joins_operations():
    """Returns whether TensorFlow fuses a product with the operations that follow it."""
    return is_for_inference() and is_on_cpu()


def _float32(tensor):
    return tf.cast(tensor, tf.float32)
