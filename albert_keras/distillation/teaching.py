"""The teacher of a distillation, and what it changes in a pre-training run."""

import functools
import logging

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig, TeachingConfig
from albert_keras.distillation.student import TaughtStudent
from albert_keras.distillation.warm_start import layer_map, layer_misfits, start_warm
from albert_keras.formats.loading import encoder_digest
from albert_keras.formats.model_weights import HEADS
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.build import build_pretraining
from albert_keras.training.start import Start
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

_HEAD = HEADS["masked_lm"]


class Teaching(Start):
    """A teacher with the settings of a distillation on records, as `pretrain` needs it.

    Args:
        teacher: OpenedModel. A trained model with a masked-LM head.
        config: DistillationConfig.
        student: AlbertConfig.
        strategy: tf.distribute.Strategy. What the student is trained under; it must be built before
            the teacher is opened.

    Attributes:
        settings: TeachingConfig. With a value for each default that depends on the teacher.
        trained_positions: int. Positions of the student whose embeddings start from trained ones.

    Raises:
        InputError: If the teacher is random or has no masked-LM head, or if teacher, student and
            settings do not fit together.
    """

    def __init__(
        self,
        teacher: OpenedModel,
        config: DistillationConfig,
        student: AlbertConfig,
        strategy: tf.distribute.Strategy,
    ):
        if "masked_lm" not in teacher.heads:
            raise InputError(
                f"The teacher `{teacher}` must be a pre-trained model with a masked-LM head, to "
                f"teach on records. Received: heads {', '.join(teacher.heads) or 'none'}."
            )
        self.weights, self.strategy = teacher, strategy
        self.settings = _resolved(config.distillation, teacher.albert_config, student)
        misfits = layer_misfits(teacher.albert_config, student)
        self._layers: tuple[int, ...] = ()
        if self.settings.warm_start is not False and not misfits:
            depths = teacher.albert_config.num_hidden_layers, student.num_hidden_layers
            self._layers = layer_map(*depths)
        elif self.settings.warm_start:
            listing = "\n  ".join(misfits)
            raise InputError(
                f"A student that starts from the layers of its teacher `{teacher}` must have "
                "the same layers:\n"
                f"  {listing}\nUse `warm_start=False`, or another student."
            )
        elif self.settings.warm_start is None:
            logger.info(
                "no layer starts from a layer of the teacher, because they differ: %s",
                "; ".join(misfits),
            )
        has_table = teacher.albert_config.embedding_size == student.embedding_size
        if self.settings.warm_start is not False and has_table:
            self.trained_positions = min(teacher.trained_positions, student.max_position_embeddings)

    def describe(self):
        return {
            "origin": None,
            "origin_digest": None,
            "origin_positions": self.trained_positions,
            "teacher": str(self.weights),
            "teacher_digest": encoder_digest(self.weights.tensors, _HEAD),
        }

    def load(self, student):
        if self.settings.warm_start is False:
            return None
        return start_warm(
            self.weights.tensors, self.weights.albert_config, student, str(self), self._layers
        )

    def __str__(self):
        layers = ", ".join(map(str, self._layers)) or "none"
        return f"the teacher {self.weights} (layers: {layers})"

    def build(self, config, albert_config, skips_padding):
        settings = self.settings
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


def _resolved(settings: TeachingConfig, teacher: AlbertConfig, student: AlbertConfig):
    """Returns TeachingConfig with the weight of the cosine loss; InputError if it is not valid."""
    ours, theirs = student.hidden_size, teacher.hidden_size
    weight = settings.cosine_weight
    if weight is None:
        weight = 1.0 if ours == theirs else 0.0
    if ours != theirs and (weight or not settings.soft_target_weight):
        raise InputError(
            "`distillation.cosine_weight` must be 0, and `distillation.soft_target_weight` above "
            "0, unless student and teacher have the same hidden size. Received: "
            f"{weight:g} and {settings.soft_target_weight:g}, and the hidden sizes {ours} and "
            f"{theirs}."
        )
    return settings.replace(cosine_weight=weight)
