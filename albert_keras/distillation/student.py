"""The student of a distillation on records: its objectives include the teacher's predictions."""

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TeachingConfig
from albert_keras.distillation.losses import cosine_distances, soft_targets
from albert_keras.models.objective_model import Objective
from albert_keras.models.pretraining import AlbertForPretraining

#: Features of a batch that contain the teacher's logits, if they were cached.
CACHED_LOGITS, CACHED_PIECES = "teacher_logits", "teacher_pieces"


class Signals(NamedTuple):
    """What a student learns from: the teacher's outputs at the predicted positions."""

    logits: tf.Tensor  # float32 [B, P, K]
    pieces: tf.Tensor | None  # int32 [B, P, K], see `soft_targets`
    hidden: tf.Tensor | None  # [B, P, H] after the last layer; None if it was not cached


def signals_of(teacher: AlbertForPretraining, features: dict, top_k: int | None) -> Signals:
    """Runs a teacher on features, without dropout and without gradients."""
    outputs = teacher(features, training=False, only_predictions=True)
    logits = teacher.masked_lm_head.logits(outputs["masked_lm_scores"])
    pieces = None
    if top_k is not None:
        logits, pieces = tf.math.top_k(logits, top_k)
        pieces = tf.stop_gradient(pieces)
    return Signals(tf.stop_gradient(logits), pieces, tf.stop_gradient(outputs["masked_output"]))


class TaughtStudent(AlbertForPretraining):
    """Learns masked tokens, sentence order, and the predictions of a teacher.

    Args:
        config: AlbertConfig. Of the student.
        teacher: AlbertForPretraining or None. Runs once on each part of a batch; its weights are
            neither trained nor saved. It is not needed if all batches contain its cached logits.
        settings: TeachingConfig, in which `cosine_weight` is not None.
        **kwargs: As in `AlbertForPretraining`.
    """

    def __init__(
        self,
        config: AlbertConfig,
        teacher: AlbertForPretraining | None,
        settings: TeachingConfig,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self._settings = settings
        object.__setattr__(self, "_teacher", teacher)  # for Keras it is no part of the student

    @property
    def teacher(self) -> AlbertForPretraining | None:
        """AlbertForPretraining or None. The teacher."""
        return self._teacher

    def objectives(self, features):
        found = super().objectives(features)
        weights = found["masked_lm"].weights  # all are means over the predictions
        signals = functools.cache(lambda: self._signals(features))

        def soft_target(outputs):
            logits, pieces, _ = signals()
            bias = self.masked_lm_head.output_bias
            temperature = self._settings.temperature
            return soft_targets(outputs["masked_lm_scores"], bias, logits, temperature, pieces)

        def cosine(outputs):
            distances = cosine_distances(outputs["masked_output"], signals().hidden)
            return distances, tf.zeros_like(distances)

        return found | {
            "soft_target": Objective(weights, soft_target),
            "cosine": Objective(weights, cosine),
        }

    def _signals(self, features):
        if CACHED_LOGITS in features:
            return Signals(features[CACHED_LOGITS], features[CACHED_PIECES], None)
        return signals_of(self.teacher, features, self._settings.top_k)

    def _results(self):
        results = super()._results()
        results.pop("cosine_accuracy", None)  # no prediction counts as correct
        return results
