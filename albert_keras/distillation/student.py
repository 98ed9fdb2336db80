"""The students of a distillation: their objectives include the predictions of a teacher."""

import functools
from typing import Any

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TaskTeachingConfig, TeachingConfig
from albert_keras.distillation.losses import cosine_distances, soft_answers, soft_targets
from albert_keras.models.objective_model import Objective
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.tasks.kinds import TaskKind, load_class

#: The feature of a row of a task that contains the teacher's logits, float32 [B, C].
TEACHER_LOGITS = "teacher_logits"


def outputs_of_teacher(teacher: AlbertForPretraining, features: dict) -> dict[str, tf.Tensor]:
    """Runs a teacher on features, without dropout and without gradients.

    Returns:
        dict of its outputs at the predicted positions: "logits" [B, P, V], and "hidden" [B, P, H]
        after the last layer.
    """
    outputs = teacher(features, training=False, only_predictions=True)
    logits = teacher.masked_lm_head.logits(outputs["masked_lm_scores"])
    found = {"logits": logits, "hidden": outputs["masked_output"]}
    return {name: tf.stop_gradient(values) for name, values in found.items()}


class TaughtStudent(AlbertForPretraining):
    """Learns masked tokens, sentence order, and the predictions of a teacher.

    Args:
        config: AlbertConfig. Of the student.
        teacher: AlbertForPretraining. Runs once on each part of a batch; its weights are neither
            trained nor saved.
        settings: TeachingConfig, in which `cosine_weight` is not None.
        **kwargs: As in `AlbertForPretraining`.
    """

    def __init__(
        self,
        config: AlbertConfig,
        teacher: AlbertForPretraining,
        settings: TeachingConfig,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self._settings = settings
        object.__setattr__(self, "_teacher", teacher)  # for Keras it is no part of the student

    @property
    def teacher(self) -> AlbertForPretraining:
        """AlbertForPretraining. The teacher."""
        return self._teacher

    def objectives(self, features):
        found = super().objectives(features)
        weights = found["masked_lm"].weights  # all are means over the predictions
        of_teacher = functools.cache(lambda: outputs_of_teacher(self.teacher, features))

        def soft_target(outputs):
            logits = self.masked_lm_head.logits(outputs["masked_lm_scores"])
            return soft_targets(logits, of_teacher()["logits"], self._settings.temperature)

        def cosine(outputs):
            distances = cosine_distances(outputs["masked_output"], of_teacher()["hidden"])
            return distances, tf.zeros_like(distances)

        return found | {
            "soft_target": Objective(weights, soft_target),
            "cosine": Objective(weights, cosine),
        }

    def _results(self):
        results = super()._results()
        results.pop("cosine_accuracy", None)  # no prediction counts as correct
        return results


def taught_class(kind: TaskKind, settings: TaskTeachingConfig) -> type:
    """Returns the class of the model of a kind that also learns the answers of a teacher.

    The teacher's logits are features, `TEACHER_LOGITS`.
    """

    class TaughtModel(load_class(kind.model_class)):
        objective_weights_of_task = {
            "answer": settings.answer_weight,
            "soft_target": settings.soft_target_weight,
        }

        def objectives(self, features):
            def soft_target(outputs):
                teacher_logits = features[TEACHER_LOGITS]
                return soft_answers(kind, outputs["logits"], teacher_logits, settings.temperature)

            soft = Objective(self.weights_of(features), soft_target)
            return super().objectives(features) | {"soft_target": soft}

    return TaughtModel
