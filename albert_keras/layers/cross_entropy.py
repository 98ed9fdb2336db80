"""Sparse cross-entropy without a float32 copy of the scores.

Over a vocabulary the scores are the largest tensor of a step. The gradient is computed from them
again, and written once.
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
        tuple of float32 [N]: cross-entropies in nats, and 1 where the label scores highest, else 0;
        the first of equal scores counts, which are compared in the dtype of `scores`. Only the
        cross-entropies have a gradient.
    """

    @differentiable
    def run(scores, bias):
        # A compiled kernel looks for the largest element several times as slowly as `argmax`.
        logits = tf.nn.bias_add(scores, tf.cast(bias, scores.dtype))
        best = tf.argmax(logits, axis=-1, output_type=labels.dtype)  # [N]
        largest, chosen = (_logits_at(each, scores, bias) for each in (best, labels))
        log_sums = _log_sums(scores, bias, largest)

        def gradient(upstream, _):
            d_scores = _slopes(scores, bias, labels, log_sums, largest, upstream)
            return d_scores, column_sums(d_scores)

        losses = log_sums + (largest - chosen)  # this order keeps the precision of small losses
        return (losses, tf.cast(best == labels, tf.float32)), gradient

    return run(scores, tf.convert_to_tensor(bias))


def _logits_at(columns, scores, bias):
    """Returns one logit of each row, float32 [N]."""
    found = tf.cast(tf.gather(scores, columns, batch_dims=1), tf.float32)
    return found + tf.gather(bias, columns)


@kernel
def _log_sums(scores, bias, largest):
    logits = tf.cast(scores, tf.float32) + bias
    return tf.math.log(tf.reduce_sum(tf.exp(logits - largest[:, None]), axis=-1))


@kernel
def _slopes(scores, bias, labels, log_sums, largest, upstream):
    logits = tf.cast(scores, tf.float32) + bias
    is_right = tf.range(scores.shape[1], dtype=labels.dtype) == labels[:, None]
    slopes = tf.exp(logits - largest[:, None] - log_sums[:, None]) - tf.cast(is_right, tf.float32)
    return tf.cast(slopes * upstream[:, None], scores.dtype)
