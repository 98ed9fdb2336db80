"""Losses of the two pre-training objectives, in nats and in float32.

The `..._sums` functions return sums and counts, so that a caller can add them up over replicas and
accumulated batches before it divides; the reference divides on each replica and averages the
quotients, which weighs a prediction more where there are few of them.
"""

from typing import NamedTuple

import tensorflow as tf

from albert_keras.layers.cross_entropy import sparse_cross_entropy

#: Keeps the quotient finite for a batch without a prediction (google-research/albert,
#: `run_pretraining.py`).
NO_PREDICTION_GUARD = 1e-5


class Sums(NamedTuple):
    """What one batch adds to the loss and the accuracy of one objective.

    Attributes:
        loss: float32 scalar. Sum of weight times cross-entropy, in nats.
        weight: float32 scalar. Sum of weights: the number of predictions that count.
        correct: float32 scalar. Sum of the weights of predictions that are right.
    """

    loss: tf.Tensor
    weight: tf.Tensor
    correct: tf.Tensor


def masked_lm_sums(logits, masked_lm_ids, masked_lm_weights, bias=None):
    """Sums cross-entropy, weights and right answers over the masked positions of a batch.

    Args:
        logits: float [B, P, V]. Scores at the masked positions, not normalised.
        masked_lm_ids: int [B, P]. Pieces that stood there before masking.
        masked_lm_weights: float [B, P]. 1 for a real prediction, 0 for padding.
        bias: float32 [V] or None. What is still to be added to the logits.

    Returns:
        Sums.

    Raises:
        ValueError: If the three differ in B or P.
    """
    return _weighted_sums(logits, masked_lm_ids, masked_lm_weights, bias)


def sentence_order_sums(logits, labels, weights):
    """Sums cross-entropy, weights and right answers over the segment pairs of a batch.

    Args:
        logits: float [B, 2]. Scores of "in order" and "swapped", not normalised.
        labels: int [B]. 0 in order, 1 swapped.
        weights: float [B]. 1 for a real instance, 0 for one that fills up the batch.

    Returns:
        Sums.

    Raises:
        ValueError: If the three differ in B.
    """
    return _weighted_sums(logits, labels, weights)


def masked_lm_loss(logits, masked_lm_ids, masked_lm_weights):
    """Averages the cross-entropy over the masked positions of a batch, in nats.

    Each real prediction counts once, whatever sequence it comes from.

    Args:
        logits: float [B, P, V]. Scores at the masked positions, not normalised.
        masked_lm_ids: int [B, P]. Pieces that stood there before masking.
        masked_lm_weights: float [B, P]. 1 for a real prediction, 0 for padding.

    Returns:
        float32 scalar. 0 for a batch without a single prediction.

    Raises:
        ValueError: If the three differ in B or P.

    Source:
        `get_masked_lm_output` in google-research/albert, `run_pretraining.py`, with its 1e-5 in
        the denominator.
    """
    sums = masked_lm_sums(logits, masked_lm_ids, masked_lm_weights)
    return sums.loss / (sums.weight + NO_PREDICTION_GUARD)


def _weighted_sums(logits, labels, weights, bias=None):
    weights = tf.cast(weights, tf.float32)  # [...]
    labels = tf.convert_to_tensor(labels)
    for name, tensor in (("labels", labels), ("weights", weights)):
        if not tensor.shape.is_compatible_with(logits.shape[:-1]):
            raise ValueError(
                f"The {name} should have the shape of the logits without its last dimension. "
                f"Received: {name} {tensor.shape}, logits {logits.shape}."
            )
    num_classes = logits.shape[-1]
    losses, is_right = sparse_cross_entropy(
        tf.reshape(logits, [-1, num_classes]),
        tf.zeros([num_classes]) if bias is None else tf.convert_to_tensor(bias),
        tf.reshape(labels, [-1]),
    )
    weights = tf.reshape(weights, [-1])
    return Sums(
        loss=tf.reduce_sum(weights * losses),
        weight=tf.reduce_sum(weights),
        correct=tf.reduce_sum(weights * is_right),
    )
