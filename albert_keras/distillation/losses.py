"""Losses between a student and its teacher, in nats and in float32.

On records, predictions are compared where tokens are predicted, and hidden states at all tokens;
those of the last layer only at [CLS] and where tokens are predicted, because it runs only there.
Deviation from the code of Sanh et al., which compares predictions at all positions unless
`restrict_ce_to_mask` is set, and hidden states of the last layer alone.
"""

import tensorflow as tf

from albert_keras.tasks.kinds import MULTI_LABEL, OF_NUMBERS, TaskKind


def soft_targets(logits, teacher_logits, temperature: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes T² times the divergence of the student from the teacher's distribution, KL(t || s).

    Both distributions are the softmax of the logits divided by the temperature T. The factor T²
    keeps the gradients as large as at T = 1 (Hinton et al. 2015, section 2).

    Args:
        logits, teacher_logits: float [..., C].
        temperature: T.

    Returns:
        float32 [...] each: the losses, and 1 where the student's prediction is the teacher's.
    """
    logits, teacher_logits = (tf.cast(each, tf.float32) for each in (logits, teacher_logits))
    log_student = tf.nn.log_softmax(logits / temperature)
    log_teacher = tf.nn.log_softmax(teacher_logits / temperature)
    divergence = tf.reduce_sum(tf.exp(log_teacher) * (log_teacher - log_student), axis=-1)
    agrees = tf.argmax(logits, axis=-1) == tf.argmax(teacher_logits, axis=-1)
    return temperature**2 * divergence, tf.cast(agrees, tf.float32)


def soft_answers(
    kind: TaskKind, logits, teacher_logits, temperature: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compares a student's and a teacher's answers to rows of a task.

    Args:
        kind: A kind whose answers are classes, options, labels or numbers.
        logits, teacher_logits: float [B, C].
        temperature: T.

    Returns:
        float32 [B] each: the losses, and 1 where an answer is the teacher's. For classes and
        options they are those of `soft_targets`; for labels the mean over the labels, each of them
        a choice of two; for numbers the mean of the squared differences, which have no temperature,
        and never an equal answer.
    """
    logits = tf.cast(logits, tf.float32)
    if kind in OF_NUMBERS:
        losses = tf.reduce_mean(tf.square(logits - teacher_logits), axis=-1)
        return losses, tf.zeros_like(losses)
    if kind is MULTI_LABEL:  # sigmoid(x) is the softmax of x and 0
        pairs = [tf.stack([each, tf.zeros_like(each)], -1) for each in (logits, teacher_logits)]
        losses, agrees = soft_targets(*pairs, temperature)
        return tf.reduce_mean(losses, axis=-1), tf.reduce_mean(agrees, axis=-1)
    return soft_targets(logits, teacher_logits, temperature)


def cosine_distances(hidden, teacher_hidden):
    """Returns 1 minus the cosine of the student's and the teacher's hidden states, float32 [B, S].

    Args:
        hidden, teacher_hidden: float [B, S, H]. Outputs of a layer.
    """
    states = (tf.cast(each, tf.float32) for each in (hidden, teacher_hidden))
    first, second = (tf.math.l2_normalize(each, axis=-1) for each in states)
    return 1.0 - tf.reduce_sum(first * second, axis=-1)
