"""From settings to a compiled step."""

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.build import build_optimizer
from albert_keras.training.step import PretrainingStep


def build_step(config, albert_config):
    """Makes the compiled PretrainingStep of a configuration; call it in a strategy's scope.

    Args:
        config: PretrainingConfig, resolved.
        albert_config: AlbertConfig.

    Returns:
        PretrainingStep. Weights and moments exist.
    """
    training = config.training
    model = AlbertForPretraining(
        albert_config,
        sentence_head=training.sentence_order_weight > 0,
        seed=training.seed,
        dtype=training.precision,
        recompute=training.recompute,
    )
    optimizer = build_optimizer(
        config.optimizer,
        num_steps=training.steps,
        batch_size=training.batch_size,
        adjustable=training.time_budget is not None,
    )
    step = PretrainingStep(
        model,
        training.sentence_order_weight,
        config.optimizer.clip_norm,
        accumulation_steps=training.accumulation_steps,
        skip_spikes=training.skip_spikes,
        scales_loss=training.precision == "mixed_float16",
    )
    step.compile(optimizer=optimizer, steps_per_execution=training.steps_per_execution)
    # Keras makes the moments at the first update; a checkpoint to go on from needs them before.
    optimizer._create_all_weights(model.trainable_variables)
    return step
