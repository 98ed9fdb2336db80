"""The settings of a run as arguments of a model, of its training and of its optimizer."""

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.objective_model import ObjectiveModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.build import build_optimizer
from albert_keras.training.loop_config import LoopConfig
from data_pipeline.errors import InputError

#: Proportion of padding from which skipping it pays: it costs some passes over memory.
_MIN_PADDING = 0.05


def should_skip_padding(
    strategy: tf.distribute.Strategy, training: LoopConfig, statistics: dict | None = None
) -> bool:
    """Returns whether training does no work on padding; raises InputError for "skip" on a TPU.

    The statistics are `positions` and `real_positions` of the data.
    """
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if training.padding == "skip" and on_tpu:
        raise InputError(
            "`training.padding` must be auto or compute on a TPU, whose shapes are fixed. "
            "Received: skip."
        )
    # XLA compiles again for each shape, which takes a GPU longer than padding.
    is_fixed = on_tpu or training.compile == "step" or tf.config.list_physical_devices("GPU")
    if training.padding != "auto" or is_fixed or not statistics:
        return training.padding == "skip"
    return statistics["real_positions"] < (1 - _MIN_PADDING) * statistics["positions"]


def model_settings(training: LoopConfig, skips_padding: bool) -> dict:
    """Returns the keyword arguments that the settings determine for any trained model."""
    return {
        "seed": training.seed,
        "dtype": training.precision,
        "recompute": training.recompute,
        "skips_padding": skips_padding,
    }


def build_pretraining(
    config, albert_config: AlbertConfig, skips_padding: bool = False, model_class=None, **objectives
) -> AlbertForPretraining:
    """Builds and compiles the model of a resolved PretrainingConfig, moments included.

    Call it in the strategy's scope.

    Args:
        model_class: callable or None. Takes the arguments of AlbertForPretraining.
        **objectives: Further arguments of `AlbertForPretraining.compile`.
    """
    training = config.training
    model = (model_class or AlbertForPretraining)(
        albert_config,
        sentence_head=training.sentence_order_weight > 0,
        **model_settings(training, skips_padding),
    )
    compile_step(model, config, sentence_order_weight=training.sentence_order_weight, **objectives)
    return model


def compile_step(training_step: ObjectiveModel, config, **arguments):
    """Compiles a model for a resolved configuration; call it in the strategy's scope.

    The optimizer's moments exist afterwards: restoring a checkpoint needs them.
    """
    training = config.training
    optimizer = build_optimizer(
        config.optimizer,
        num_steps=training.steps,
        adjustable=training.time_budget is not None,
        matrix_dtype="bfloat16" if training.precision == "mixed_bfloat16" else "float32",
    )
    training_step.compile(
        optimizer=optimizer,
        clip_norm=config.optimizer.clip_norm,
        accumulation_steps=training.accumulation_steps,
        skip_spikes=training.skip_spikes,
        steps_per_execution=training.steps_per_execution,
        jit_compile=training.compile,
        **arguments,
    )
    optimizer.build(training_step.trainable_variables)
