"""The training step of a distillation on a task: the answers of the examples and of a teacher."""

import tensorflow as tf

from albert_keras.distillation.config import TaskDistillationConfig, TaskTeachingConfig
from albert_keras.distillation.losses import soft_target_sums
from albert_keras.models.objective_model import Sums
from albert_keras.tasks.kind import TaskKind
from albert_keras.tasks.kinds import (
    CHOICE,
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
)
from albert_keras.training.build import TrainingStep

#: Kinds of tasks whose examples have one row with one tensor of logits.
TAUGHT_KINDS = (CLASSIFICATION, CHOICE, MULTI_LABEL, REGRESSION, MULTI_REGRESSION)
#: The feature of a batch that contains the teacher's logits, float32 [B, C].
TEACHER_LOGITS = "teacher_logits"


def soft_answer_sums(kind: TaskKind, logits, teacher_logits, weights, temperature: float) -> Sums:
    """Sums the loss between a student's and a teacher's answers.

    Args:
        kind: One of TAUGHT_KINDS.
        logits, teacher_logits: float [B, C].
        weights: float [B]. 1 for a real row, 0 for one that fills up the batch.
        temperature: T.

    Returns:
        Sums. Each row adds, times its weight: for classes and options T² times the divergence, see
        `soft_target_sums`; for labels its mean over the labels, each of them a choice of two; for
        numbers the mean of the squared differences, which have no temperature. An answer is correct
        if it is the teacher's; numbers never are.
    """
    weights, logits = tf.cast(weights, tf.float32), tf.cast(logits, tf.float32)
    if kind in (REGRESSION, MULTI_REGRESSION):
        losses = tf.reduce_mean(tf.square(logits - teacher_logits), axis=-1)
        return Sums(tf.reduce_sum(weights * losses), tf.reduce_sum(weights), tf.zeros([]))
    if kind is MULTI_LABEL:  # sigmoid(x) is the softmax of x and 0
        count = logits.shape[-1]
        shares = tf.repeat(weights[:, None] / count, count, axis=1)  # [B, labels]
        pairs = [tf.stack([each, tf.zeros_like(each)], -1) for each in (logits, teacher_logits)]
        return soft_target_sums(pairs[0], 0.0, pairs[1], shares, temperature)
    return soft_target_sums(
        logits[:, None], 0.0, teacher_logits[:, None], weights[:, None], temperature
    )


class TaskDistillationStep(TrainingStep):
    """Trains a model on the answers of a task and on a teacher's logits, which are features."""

    def __init__(self, model, kind: TaskKind, settings: TaskTeachingConfig, **kwargs):
        super().__init__(
            model,
            objectives={
                "answer": settings.answer_weight,
                "soft_target": settings.soft_target_weight,
            },
            **kwargs,
        )
        self.kind, self.settings = kind, settings

    @property
    def trained_weights(self):
        return self.model.trained_weights

    def counts(self, features):
        return self.model.counts(features) * 2

    def sums(self, features, training, dropout_seed=None):
        outputs = self.model(features, training=training, dropout_seed=dropout_seed)
        return [
            self.model.answer_sums(outputs, features),
            soft_answer_sums(
                self.kind,
                outputs["logits"],
                features[TEACHER_LOGITS],
                features["example_weights"],
                self.settings.temperature,
            ),
        ]

    def _results(self):
        results = super()._results()
        if not self.model.has_accuracy:
            del results["answer_accuracy"]
            del results["soft_target_accuracy"]
        return results


def step_class(config: TaskDistillationConfig, kind: TaskKind):
    """Returns what `build_trained` trains a model with."""

    def build(model, **kwargs):
        return TaskDistillationStep(model, kind, config.distillation, **kwargs)

    return build
