"""Sparse cross-entropy without a float32 copy of the scores.

Over a vocabulary the scores are the largest tensor of a step. What is stored of them for the
gradient has their dtype, and the gradient is one more pass over it.
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
        exponentials, sums = _exponentials(scores, bias, largest)
        losses = tf.math.log(sums) + (largest - chosen)  # keeps the precision of small losses

        def gradient(upstream, _):
            # That of the label is not the difference of a rounded probability and 1.
            of_labels = tf.math.expm1(-losses) * upstream
            d_scores = _slopes(exponentials, upstream / sums, labels, of_labels)
            return d_scores, column_sums(d_scores)

        return (losses, tf.cast(best == labels, tf.float32)), gradient

    return run(scores, tf.convert_to_tensor(bias))


def _logits_at(columns, scores, bias):
    """Returns one logit of each row, float32 [N]."""
    found = tf.cast(tf.gather(scores, columns, batch_dims=1), tf.float32)
    return found + tf.gather(bias, columns)


@kernel
def _exponentials(scores, bias, largest):
    found = tf.exp(tf.cast(scores, tf.float32) + bias - largest[:, None])
    return tf.cast(found, scores.dtype), tf.reduce_sum(found, axis=-1)


@kernel
def _slopes(exponentials, factors, labels, of_labels):
    is_label = tf.range(exponentials.shape[1], dtype=labels.dtype) == labels[:, None]
    others = tf.cast(exponentials, tf.float32) * factors[:, None]
    return tf.cast(tf.where(is_label, of_labels[:, None], others), exponentials.dtype)
