"""Sparse cross-entropy without a float32 copy of the scores.

Over a vocabulary the scores are the largest tensor of a step. They are read twice, and their
gradient is written once.
"""

import tensorflow as tf

from albert_keras.layers.kernels import column_sums, differentiable, kernel


def sparse_cross_entropy(scores, bias, labels):
    """Returns cross-entropies and hits of scores and labels, computed in float32.

    Args:
        scores: float [N, V]. Not normalised.
        bias: float32 [V]. Added to the scores of each row.
        labels: int [N].

    Returns:
        tuple of float32 [N]: cross-entropies in nats, and 1 where the label scores highest (the
        first of equal scores counts), else 0. Only the cross-entropies have a gradient.
    """

    @differentiable
    def run(scores, bias):
        chosen = tf.gather(scores, labels, batch_dims=1)  # [N]
        chosen = tf.cast(chosen, tf.float32) + tf.gather(bias, labels)
        log_sums, largest, is_right = _log_sums(scores, bias, labels, chosen)

        def gradient(upstream, _):
            d_scores = _slopes(scores, bias, labels, log_sums, largest, upstream)
            return d_scores, column_sums(d_scores)

        losses = log_sums + (largest - chosen)  # this order keeps the precision of small losses
        return (losses, tf.cast(is_right, tf.float32)), gradient

    return run(scores, bias)


@kernel
def _log_sums(scores, bias, labels, chosen):
    logits = tf.cast(scores, tf.float32) + bias
    largest = tf.reduce_max(logits, axis=-1)
    sums = tf.reduce_sum(tf.exp(logits - largest[:, None]), axis=-1)
    chosen = chosen[:, None]
    is_before = tf.range(scores.shape[1], dtype=labels.dtype) < labels[:, None]
    is_better = (logits > chosen) | (is_before & (logits == chosen))
    return tf.math.log(sums), largest, ~tf.reduce_any(is_better, axis=-1)


@kernel
def _slopes(scores, bias, labels, log_sums, largest, upstream):
    logits = tf.cast(scores, tf.float32) + bias
    is_right = tf.range(scores.shape[1], dtype=labels.dtype) == labels[:, None]
    slopes = tf.exp(logits - largest[:, None] - log_sums[:, None]) - tf.cast(is_right, tf.float32)
    return tf.cast(slopes * upstream[:, None], scores.dtype)
