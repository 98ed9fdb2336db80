"""The training step of a distillation: pre-training, and learning the teacher's predictions."""

from typing import NamedTuple

import tensorflow as tf

from albert_keras.distillation.config import TeachingConfig
from albert_keras.distillation.losses import cosine_sums, soft_target_sums
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.pretraining_step import PretrainingStep

#: Features of a batch that contain the teacher's logits, if they were cached.
CACHED_LOGITS, CACHED_PIECES = "teacher_logits", "teacher_pieces"


class Signals(NamedTuple):
    """What a student learns from: the teacher's outputs at the predicted positions."""

    logits: tf.Tensor  # float32 [B, P, K]
    pieces: tf.Tensor | None  # int32 [B, P, K], see `soft_target_sums`
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


class DistillationStep(PretrainingStep):
    """Trains a student on masked tokens, sentence order, and the predictions of a teacher.

    Args:
        model: AlbertForPretraining. The student.
        teacher: AlbertForPretraining or None. Runs once on each part of a batch. It is not needed
            if all batches contain its cached logits.
        settings: TeachingConfig, in which `cosine_weight` is not None.
        **kwargs: As in `PretrainingStep`.
    """

    def __init__(
        self,
        model: AlbertForPretraining,
        teacher: AlbertForPretraining | None,
        settings: TeachingConfig,
        **kwargs,
    ):
        weights = {"soft_target": settings.soft_target_weight, "cosine": settings.cosine_weight}
        self._teaching = {name: weight for name, weight in weights.items() if weight}
        super().__init__(
            model,
            masked_lm_weight=settings.masked_lm_weight,
            further_objectives=self._teaching,
            **kwargs,
        )
        self.settings = settings
        self._teacher = (teacher,)  # in a tuple, so that Keras does not take it for a part

    @property
    def teacher(self) -> AlbertForPretraining | None:
        """The teacher, whose weights are neither trained nor saved."""
        return self._teacher[0]

    def counts(self, features):
        counts = super().counts(features)
        return counts + counts[:1] * len(self._teaching)  # all are means over the predictions

    def sums(self, features, training, dropout_seed=None):
        outputs = self.run_model(features, training, dropout_seed)
        sums = self.sums_of(outputs, features)
        weights = features["masked_lm_weights"] * features["example_weights"][:, None]  # [B, P]
        signals = self._signals(features)
        if "soft_target" in self._teaching:
            sums.append(
                soft_target_sums(
                    outputs["masked_lm_scores"],
                    self.model.masked_lm_head.output_bias,
                    signals.logits,
                    weights,
                    self.settings.temperature,
                    signals.pieces,
                )
            )
        if "cosine" in self._teaching:
            sums.append(cosine_sums(outputs["masked_output"], signals.hidden, weights))
        return sums

    def _signals(self, features):
        if CACHED_LOGITS in features:
            return Signals(features[CACHED_LOGITS], features[CACHED_PIECES], None)
        return signals_of(self.teacher, features, self.settings.top_k)

    def _results(self):
        results = super()._results()
        results.pop("cosine_accuracy", None)  # no prediction counts as correct
        return results
