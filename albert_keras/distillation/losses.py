"""Losses between a student and its teacher, in nats and in float32; sums, as `training/losses.py`.

Both are computed at the predicted positions. Deviation from the code of Sanh et al., which compares
hidden states at all positions, and predictions too unless `restrict_ce_to_mask` is set: here the
masked-LM head, and the last layer of both models, run only where tokens are predicted.
"""

import tensorflow as tf

from albert_keras.training.losses import Sums


def soft_target_sums(logits, bias, teacher_logits, weights, temperature, pieces=None) -> Sums:
    """Sums T² times the divergence of the student from the teacher's distribution, KL(t || s).

    Both distributions are the softmax of the logits divided by the temperature T. The factor T²
    keeps the gradients as large as at T = 1 (Hinton et al. 2015, section 2).

    Args:
        logits: float [B, P, V]. Of the student, without `bias`.
        bias: float32 [V]. Added to `logits`.
        teacher_logits: float [B, P, K]. Of the teacher, with its bias. With K < V the teacher's
            distribution covers these pieces alone.
        weights: float [B, P]. 1 for a real prediction, 0 for padding.
        temperature: float. T.
        pieces: int [B, P, K] or None. The piece of each of the teacher's logits; None stands for
            the whole vocabulary.

    Returns:
        Sums. A prediction is correct if it is the teacher's.
    """
    weights = tf.cast(weights, tf.float32)
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
    return Sums(
        loss=temperature**2 * tf.reduce_sum(weights * divergence),
        weight=tf.reduce_sum(weights),
        correct=tf.reduce_sum(weights * tf.cast(agrees, tf.float32)),
    )


def cosine_sums(hidden, teacher_hidden, weights) -> Sums:
    """Sums 1 minus the cosine of the student's and the teacher's hidden states.

    Args:
        hidden, teacher_hidden: float [B, P, H]. Outputs of the last layer.
        weights: float [B, P]. As in `soft_target_sums`.

    Returns:
        Sums. Nothing counts as correct.
    """
    weights = tf.cast(weights, tf.float32)
    cosine = tf.reduce_sum(
        tf.math.l2_normalize(tf.cast(hidden, tf.float32), axis=-1)
        * tf.math.l2_normalize(tf.cast(teacher_hidden, tf.float32), axis=-1),
        axis=-1,
    )
    return Sums(
        loss=tf.reduce_sum(weights * (1.0 - cosine)),
        weight=tf.reduce_sum(weights),
        correct=tf.zeros([]),
    )
