"""Losses between a student and its teacher, in nats and in float32.

Both are computed at the predicted positions. Deviation from the code of Sanh et al., which compares
hidden states at all positions, and predictions too unless `restrict_ce_to_mask` is set: here the
masked-LM head, and the last layer of both models, run only where tokens are predicted.
"""

import tensorflow as tf

from albert_keras.models.objective_model import Sums


def soft_targets(logits, bias, teacher_logits, temperature, pieces=None):
    """Computes T² times the divergence of the student from the teacher's distribution, KL(t || s).

    Both distributions are the softmax of the logits divided by the temperature T. The factor T²
    keeps the gradients as large as at T = 1 (Hinton et al. 2015, section 2).

    Args:
        logits: float [B, P, V]. Of the student, without `bias`.
        bias: float32 [V]. Added to `logits`.
        teacher_logits: float [B, P, K]. Of the teacher, with its bias. With K < V the teacher's
            distribution covers these pieces alone.
        temperature: float. T.
        pieces: int [B, P, K] or None. The piece of each of the teacher's logits; None stands for
            the whole vocabulary.

    Returns:
        float32 [B, P] each: the losses, and 1 where the student's prediction is the teacher's.
    """
    logits = tf.cast(logits, tf.float32) + bias
    teacher_logits = tf.cast(teacher_logits, tf.float32)
    log_student = tf.nn.log_softmax(logits / temperature)  # [B, P, V]
    log_teacher = tf.nn.log_softmax(teacher_logits / temperature)  # [B, P, K]
    best = tf.argmax(teacher_logits, axis=-1, output_type=tf.int32)  # [B, P]
    if pieces is not None:
        log_student = tf.gather(log_student, pieces, batch_dims=2)  # [B, P, K]
        best = tf.gather(pieces, best, batch_dims=2)
    divergence = tf.reduce_sum(tf.exp(log_teacher) * (log_teacher - log_student), axis=-1)
    agrees = tf.argmax(logits, axis=-1, output_type=tf.int32) == tf.cast(best, tf.int32)
    return temperature**2 * divergence, tf.cast(agrees, tf.float32)


def soft_target_sums(logits, bias, teacher_logits, weights, temperature, pieces=None) -> Sums:
    """Returns the Sums of `soft_targets` with weights, float [B, P]: 0 for a padded prediction."""
    losses, agrees = soft_targets(logits, bias, teacher_logits, temperature, pieces)
    weights = tf.cast(weights, tf.float32)
    parts = (weights * losses, weights, weights * agrees)
    return Sums(*(tf.reduce_sum(part) for part in parts))


def cosine_distances(hidden, teacher_hidden):
    """Returns 1 minus the cosine of the student's and the teacher's hidden states, float32 [B, P].

    Args:
        hidden, teacher_hidden: float [B, P, H]. Outputs of the last layer.
    """
    states = (tf.cast(each, tf.float32) for each in (hidden, teacher_hidden))
    first, second = (tf.math.l2_normalize(each, axis=-1) for each in states)
    return 1.0 - tf.reduce_sum(first * second, axis=-1)
