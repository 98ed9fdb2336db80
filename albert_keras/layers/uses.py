"""One weight used many times in a graph: one cast, and one sum of the gradients."""

from typing import NamedTuple

import tensorflow as tf

from albert_keras.layers.kernels import differentiable, kernel

#: Gradients summed at a time. Summing all at once reads each only once, but stores all of them.
_AT_ONCE = 4


class BlockWeights(NamedTuple):
    """Weights of one use of a block: kernels in the compute dtype, the rest float32.

    Attributes:
        inner_kernel, inner_bias: First product. [H, 3 H] and [3 H] in attention, query, key and
            value side by side; [H, I] and [I] in the feed-forward block.
        kernel, bias: Last product, [H, H] or [I, H], and [H].
        gamma, beta: [H]. Layer normalization.
    """

    inner_kernel: tf.Tensor
    inner_bias: tf.Tensor
    kernel: tf.Tensor
    bias: tf.Tensor
    gamma: tf.Tensor
    beta: tf.Tensor

    def for_each_use(self, uses, dtype):
        """Returns the weights, in the compute dtype, of each of several calls in one graph."""
        dtypes = (dtype, tf.float32) * 2 + (tf.float32,) * 2
        each = (for_each_use(part, uses, kind) for part, kind in zip(self, dtypes, strict=True))
        return [BlockWeights(*weights) for weights in zip(*each, strict=True)]


def for_each_use(weight, uses, dtype):
    """Casts a float32 weight once for several uses; returns a tensor of a dtype for each.

    TensorFlow would cast the gradient of each use to float32, store all of them and add them.
    Here they keep their dtype, at most four are stored at a time, and casts and additions are one
    pass over memory.
    """
    copies, weight = [], tf.convert_to_tensor(weight)
    while uses > len(copies):
        number = min(_AT_ONCE, uses - len(copies))
        *some, weight = _copies(number, dtype)(weight)
        copies += some
    return copies


def _copies(number, dtype):
    @differentiable
    def run(weight):
        cast = tf.cast(weight, dtype)
        outputs = [tf.identity(cast) for _ in range(number)]
        return [*outputs, tf.identity(weight)], lambda *upstream: _total(*upstream)

    return run


@kernel
def _total(*gradients):
    return tf.add_n([tf.cast(gradient, tf.float32) for gradient in gradients])
