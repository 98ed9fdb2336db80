"""The teacher of a distillation, and what it changes in a pre-training run."""

import functools

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig
from albert_keras.distillation.student import TaughtStudent
from albert_keras.distillation.warm_start import check_layers, start_warm
from albert_keras.formats.loading import encoder_digest
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.shape import HEADS
from albert_keras.training.build import build_pretraining
from albert_keras.training.start import Start
from data_pipeline.errors import InputError

_HEAD = HEADS["masked_lm"]


class Teaching(Start):
    """A teacher with the settings of a distillation, as `pretrain` needs it.

    Args:
        teacher: OpenedModel. A trained model with a masked-LM head.
        config: DistillationConfig.
        student: AlbertConfig.

    Attributes:
        trained_positions: int. Positions of the student whose embeddings start from trained ones.

    Raises:
        InputError: If the teacher is random or has no masked-LM head, or if teacher, student and
            settings do not fit together.
    """

    def __init__(self, teacher: OpenedModel, config: DistillationConfig, student: AlbertConfig):
        if "masked_lm" not in teacher.heads:
            raise InputError(
                f"The teacher `{teacher}` must be a pre-trained model with a masked-LM head. "
                f"Received: heads {', '.join(teacher.heads) or 'none'}."
            )
        self.weights, self._settings = teacher, config.distillation
        theirs = teacher.albert_config
        if self._settings.cosine_weight and theirs.hidden_size != student.hidden_size:
            raise InputError(
                "`distillation.cosine_weight` must be 0 unless student and teacher have the same "
                f"hidden size. Received: {self._settings.cosine_weight:g}, and the hidden sizes "
                f"{student.hidden_size} and {theirs.hidden_size}."
            )
        if self._settings.warm_start:
            check_layers(theirs, student, str(teacher))
            if theirs.embedding_size == student.embedding_size:
                self.trained_positions = min(
                    teacher.trained_positions, student.max_position_embeddings
                )

    def describe(self):
        return {
            "origin": None,
            "origin_digest": None,
            "origin_positions": self.trained_positions,
            "teacher": str(self.weights),
            "teacher_digest": encoder_digest(self.weights.tensors, _HEAD),
        }

    def load(self, student):
        return start_warm(self.weights, student) if self._settings.warm_start else None

    def build(self, config, albert_config, skips_padding):
        settings = self._settings
        student = functools.partial(
            TaughtStudent,
            teacher=teacher_model(self.weights, config.training.precision),
            settings=settings,
        )
        weights = {"soft_target": settings.soft_target_weight, "cosine": settings.cosine_weight}
        return build_pretraining(
            config,
            albert_config,
            skips_padding,
            student,
            masked_lm_weight=settings.masked_lm_weight,
            objective_weights={name: weight for name, weight in weights.items() if weight},
        )


def teacher_model(weights: OpenedModel, precision: str) -> AlbertForPretraining:
    """Builds a teacher with its weights, which are not trained.

    Call it in the scope of a strategy if the model is to run under one.
    """

    def create(next_creator, **settings):
        return next_creator(**settings | {"trainable": False})

    # Variables that are trainable would be watched by the gradient tape of the student.
    with tf.variable_creator_scope(create):
        model = AlbertForPretraining.from_preset(weights, sentence_head=False, dtype=precision)
    model.trainable = False
    return model
