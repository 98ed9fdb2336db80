"""From the settings of a run to the settings of its model and its training step."""

import tensorflow as tf

from albert_keras.optimization.build import build_optimizer
from albert_keras.training.loop.loop_config import LoopConfig
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
    if training.padding != "auto" or on_tpu or not statistics:
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


def step_settings(config) -> dict:
    """Returns the keyword arguments that a configuration determines for a TrainingStep."""
    training = config.training
    return {
        "clip_norm": config.optimizer.clip_norm,
        "accumulation_steps": training.accumulation_steps,
        "skip_spikes": training.skip_spikes,
        "scales_loss": training.precision == "mixed_float16",
    }


def compile_step(training_step, config):
    """Compiles a TrainingStep for a resolved configuration; call it in the strategy's scope.

    The optimizer's moments exist afterwards.
    """
    training = config.training
    optimizer = build_optimizer(
        config.optimizer,
        num_steps=training.steps,
        batch_size=training.batch_size,
        adjustable=training.time_budget is not None,
    )
    training_step.compile(optimizer=optimizer, steps_per_execution=training.steps_per_execution)
    # Keras creates the moments at the first update; restoring a checkpoint needs them before.
    optimizer._create_all_weights(training_step.model.trainable_variables)
