"""Functions that are computed again for their gradient instead of keeping what they computed."""

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops


def recomputed(function):
    """Returns the same function with a gradient that computes it again and stores only its inputs.

    It takes float tensors and returns one, and may use variables.

    Source:
        Chen et al.: Training deep nets with sublinear memory cost
        (https://arxiv.org/abs/1604.06174).
    """
    # A TPU's compiler sees through `tf.recompute_grad` and merges the two computations again. The
    # barrier is for compilers only and has no kernel elsewhere.
    if isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy):
        return _behind_a_barrier(function)
    return tf.recompute_grad(function)


def _behind_a_barrier(function):
    @tf.autograph.experimental.do_not_convert  # which would lose the gradient
    @tf.custom_gradient
    def run(*inputs):
        def gradient(upstream, variables=None):
            *kept, later = gen_xla_ops.xla_optimization_barrier([*inputs, upstream])
            with tf.GradientTape() as tape:
                tape.watch(kept)
                outputs = function(*kept)
            gradients = tape.gradient(outputs, [*kept, *(variables or [])], output_gradients=later)
            number = len(inputs)
            return gradients if variables is None else (gradients[:number], gradients[number:])

        return function(*inputs), gradient

    return run
