"""From settings to a compiled step."""

import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.build import build_optimizer
from albert_keras.training.pretraining_step import PretrainingStep
from data_pipeline.errors import InputError

#: Share of padding from which on leaving it out pays: it costs some passes over memory.
_MIN_PADDING = 0.05


def should_skip_padding(strategy, training, statistics=None):
    """Tells whether training should leave padding out (bool).

    Args:
        strategy: tf.distribute.Strategy.
        training: TrainingConfig.
        statistics: dict or None. Those of the records, with `positions` and `real_positions`.

    Raises:
        InputError: If it is asked for on a TPU.
    """
    on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
    if training.padding == "skip" and on_tpu:
        raise InputError(
            "`training.padding` should be auto or compute on a TPU, whose shapes are fixed. "
            "Received: skip."
        )
    if training.padding != "auto" or on_tpu or not statistics:
        return training.padding == "skip"
    return statistics["real_positions"] < (1 - _MIN_PADDING) * statistics["positions"]


def build_step(config, albert_config, skips_padding=False):
    """Makes the compiled PretrainingStep of a configuration; call it in a strategy's scope.

    Args:
        config: PretrainingConfig, resolved.
        albert_config: AlbertConfig.
        skips_padding: bool. See `AlbertEncoder`.

    Returns:
        PretrainingStep. Weights and moments exist.
    """
    training = config.training
    model = AlbertForPretraining(
        albert_config,
        sentence_head=training.sentence_order_weight > 0,
        **model_settings(training, skips_padding),
    )
    step = PretrainingStep(model, training.sentence_order_weight, **step_settings(config))
    compile_step(step, config)
    return step


def model_settings(training, skips_padding):
    """Returns what a LoopConfig says of any model that is trained: dict of keyword arguments."""
    return {
        "seed": training.seed,
        "dtype": training.precision,
        "recompute": training.recompute,
        "skips_padding": skips_padding,
    }


def step_settings(config):
    """Returns what a configuration says of any TrainingStep: dict of keyword arguments."""
    training = config.training
    return {
        "clip_norm": config.optimizer.clip_norm,
        "accumulation_steps": training.accumulation_steps,
        "skip_spikes": training.skip_spikes,
        "scales_loss": training.precision == "mixed_float16",
    }


def compile_step(step, config):
    """Gives a TrainingStep its optimizer, whose moments exist afterwards; call it in the scope.

    Args:
        step: TrainingStep.
        config: PretrainingConfig or FinetuneConfig, resolved.
    """
    training = config.training
    optimizer = build_optimizer(
        config.optimizer,
        num_steps=training.steps,
        batch_size=training.batch_size,
        adjustable=training.time_budget is not None,
    )
    step.compile(optimizer=optimizer, steps_per_execution=training.steps_per_execution)
    # Keras makes the moments at the first update; a checkpoint to go on from needs them before.
    optimizer._create_all_weights(step.model.trainable_variables)
