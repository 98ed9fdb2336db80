"""Losses of the two pre-training objectives, in nats and in float32.

The `..._sums` functions return sums and counts, so that a caller can add them up over replicas and
accumulated parts before it divides. The reference divides on each replica and averages the
quotients, which gives a prediction more weight where there are few of them.
"""

from typing import NamedTuple

import tensorflow as tf

from albert_keras.layers.cross_entropy import sparse_cross_entropy


class Sums(NamedTuple):
    """The contribution of one batch to loss and accuracy of one objective."""

    loss: tf.Tensor  # sum of weight times cross-entropy, in nats
    weight: tf.Tensor  # sum of weights: the number of predictions that count
    correct: tf.Tensor  # sum of the weights of correct predictions


def masked_lm_sums(logits, masked_lm_ids, masked_lm_weights, bias=None) -> Sums:
    """Sums cross-entropy, weights and correct answers over the masked positions of a batch.

    Args:
        logits: float [B, P, V]. Scores at the masked positions, not normalised.
        masked_lm_ids: int [B, P]. Ids of the original tokens.
        masked_lm_weights: float [B, P]. 1 for a real prediction, 0 for padding.
        bias: float32 [V] or None. Added to the logits.

    Raises:
        ValueError: If the three differ in B or P.
    """
    return _weighted_sums(logits, masked_lm_ids, masked_lm_weights, bias)


def sentence_order_sums(logits, labels, weights) -> Sums:
    """Sums cross-entropy, weights and correct answers over the segment pairs of a batch.

    Args:
        logits: float [B, 2]. Scores of "in order" and "swapped", not normalised.
        labels: int [B]. 0 in order, 1 swapped.
        weights: float [B]. 1 for a real instance, 0 for one that pads the batch.

    Raises:
        ValueError: If the three differ in B.
    """
    return _weighted_sums(logits, labels, weights)


def row_sums(logits, labels, weights, bias=None) -> tf.Tensor:
    """Returns the sums of weighted cross-entropies and of weights of each row, float32 [2, B].

    Args:
        logits: float [B, ..., V].
        labels: int [B, ...].
        weights: float [B, ...].
        bias: float32 [V] or None. Added to the logits.
    """
    losses, weights, _ = _weighted(logits, labels, weights, bias)
    rows = [-1, labels.shape[1] if labels.shape.rank > 1 else 1]
    return tf.stack([tf.reduce_sum(tf.reshape(each, rows), 1) for each in (losses, weights)])


def _weighted_sums(logits, labels, weights, bias=None):
    return Sums(*(tf.reduce_sum(each) for each in _weighted(logits, labels, weights, bias)))


def _weighted(logits, labels, weights, bias):
    """Returns weighted losses, weights and weighted correct answers, each float32 [N]."""
    weights = tf.cast(weights, tf.float32)  # [...]
    labels = tf.convert_to_tensor(labels)
    for name, tensor in (("labels", labels), ("weights", weights)):
        if not tensor.shape.is_compatible_with(logits.shape[:-1]):
            raise ValueError(
                f"The {name} must have the shape of the logits without its last dimension. "
                f"Received: {name} {tensor.shape}, logits {logits.shape}."
            )
    num_classes = logits.shape[-1]
    losses, is_right = sparse_cross_entropy(
        tf.reshape(logits, [-1, num_classes]),
        tf.zeros([num_classes]) if bias is None else tf.convert_to_tensor(bias),
        tf.reshape(labels, [-1]),
    )
    weights = tf.reshape(weights, [-1])
    return weights * losses, weights, weights * is_right
