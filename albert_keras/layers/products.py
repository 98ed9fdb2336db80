"""The product of a layer, with its gradient written out."""

import tensorflow as tf

from albert_keras.layers.kernels import column_sums, differentiable


@differentiable
def dense(rows, kernel, bias):
    """Multiplies by a kernel and adds a bias, [N, M] x [M, K] + [K] -> [N, K].

    Args:
        rows: float [N, M].
        kernel: [M, K], same dtype.
        bias: float32 [K].

    Returns:
        [N, K] in the dtype of `rows`.
    """

    def gradient(upstream):
        d_rows = tf.matmul(upstream, kernel, transpose_b=True)
        d_kernel = tf.matmul(rows, upstream, transpose_a=True)
        return d_rows, d_kernel, column_sums(upstream)

    return tf.nn.bias_add(tf.matmul(rows, kernel), tf.cast(bias, rows.dtype)), gradient
