"""The students of a distillation: their objectives include the predictions of a teacher."""

import functools
from typing import Any

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TaskTeachingConfig, TeachingConfig
from albert_keras.distillation.losses import cosine_distances, soft_answers, soft_targets
from albert_keras.layers.rows import token_mask
from albert_keras.models.objective_model import Objective
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.tasks.kinds import TaskKind, load_class

#: The feature of a row of a task that contains the teacher's logits, float32 [B, C].
TEACHER_LOGITS = "teacher_logits"


def outputs_of_teacher(teacher: AlbertForPretraining, features: dict) -> dict[str, Any]:
    """Runs a teacher on features, without dropout and without gradients.

    Returns:
        dict of its outputs: "logits" [B, P, V] at the predicted positions, and "layers", the hidden
        states after each layer: a list of [B, S, H], the last one [B, 1 + P, H] at [CLS] and the
        predicted positions.
    """
    outputs = teacher(features, training=False, only_predictions=True, return_all_layers=True)
    logits = teacher.masked_lm_head.logits(outputs["masked_lm_scores"])
    found = {"logits": logits, "layers": list(outputs["layer_outputs"])}
    return tf.nest.map_structure(tf.stop_gradient, found)


def compared_layers(layers: list, count: int) -> list:
    """Returns the layer of a teacher that each of a student's layers is compared with.

    They have equal distances, and the last one is compared with the last one. A deeper student
    repeats layers.
    """
    return [layers[-(-(depth + 1) * len(layers) // count) - 1] for depth in range(count)]


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
            theirs, layers = of_teacher()["layers"], outputs["layer_outputs"]
            pairs = zip(layers, compared_layers(theirs, len(layers)), strict=True)
            distances = tf.concat([cosine_distances(*pair) for pair in pairs], axis=1)
            return distances, tf.zeros_like(distances)

        examples = features["example_weights"][:, None]  # [B, 1]
        tokens = tf.cast(token_mask(features), tf.float32) * examples  # [B, S]
        layers = [tokens] * (len(self.encoder.blocks) - 1)
        return found | {
            "soft_target": Objective(weights, soft_target),
            "cosine": Objective(tf.concat([*layers, examples, weights], axis=1), cosine),
        }

    def outputs_of(self, features, training, dropout_seed=None):
        compares = "cosine" in self.objective_weights
        return super().outputs_of(features, training, dropout_seed, return_all_layers=compares)

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
