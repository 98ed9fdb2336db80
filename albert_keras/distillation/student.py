"""The student of a distillation: its objectives include the predictions of a teacher.

Losses between a student and its teacher are in nats and in float32. Predictions are
compared where tokens are predicted, and hidden states at all tokens; those of the last layer only
at [CLS] and where tokens are predicted, because it runs only there. Deviation from the code of Sanh
et al., which compares predictions at all positions unless `restrict_ce_to_mask` is set, and hidden
states of the last layer alone.
"""

import functools
from typing import Any

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TeachingConfig
from albert_keras.layers.rows import token_mask
from albert_keras.models.objective import Objective
from albert_keras.models.pretraining import AlbertForPretraining


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


def cosine_distances(hidden, teacher_hidden):
    """Returns 1 minus the cosine of the student's and the teacher's hidden states, float32 [B, S].

    Args:
        hidden, teacher_hidden: float [B, S, H]. Outputs of a layer.
    """
    states = (tf.cast(each, tf.float32) for each in (hidden, teacher_hidden))
    first, second = (tf.math.l2_normalize(each, axis=-1) for each in states)
    return 1.0 - tf.reduce_sum(first * second, axis=-1)


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
        settings: TeachingConfig.
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
