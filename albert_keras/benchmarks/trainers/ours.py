"""Our training step, as `pretrain` runs it: LAMB, gradients clipped, spikes watched."""

from importlib.metadata import version

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.trainers.batch import made_up_batch
from albert_keras.benchmarks.trainers.losses import LossLog

_LEARNING_RATE = 1e-3


def prepare(shape, precision, settings=None):
    """Builds the step; the loss is that of the masked language model alone.

    Args:
        shape: Shape.
        precision: str. See `TrainingConfig`.
        settings: dict or None. More of `TrainingConfig`, such as `recompute`.

    Returns:
        Prepared. A run is one update.
    """
    import tensorflow as tf

    from albert_keras.training.config import PretrainingConfig
    from albert_keras.training.distributed.strategy import build_strategy, choose_precision
    from albert_keras.training.pretraining_step import build_step

    config = PretrainingConfig.of(
        {
            "training": {"sentence_order_weight": 0.0, "precision": precision, **(settings or {})},
            "optimizer": {"lr": _LEARNING_RATE, "power": 0.0, "warmup_steps": 0},
        },
        batch_size=shape.batch_size,
    )
    config = config.resolved(choose_precision(build_strategy("single")))
    step = build_step(config, shape.config)
    features = constant_features(shape)
    function = step.make_train_function()
    device = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    facts = {
        "weights": sum(int(tf.size(weight)) for weight in step.model.trainable_variables),
        "optimizer": "LAMB",
        "device": device[0].device_type.lower(),
        "versions": {"tensorflow": version("tensorflow")},
    }
    log = LossLog(facts)

    def run():
        log.add_mean(float(function(iter([features]))["loss"]))

    return Prepared(run, facts)


def constant_features(shape):
    """Makes what our step takes of `made_up_batch`: dict of str to Tensor."""
    import tensorflow as tf

    features = {name: tf.constant(values) for name, values in made_up_batch(shape).items()}
    return features | {
        "masked_lm_weights": tf.ones([shape.batch_size, shape.predictions]),
        "sentence_order_labels": tf.zeros([shape.batch_size], tf.int32),
        "example_weights": tf.ones([shape.batch_size]),
    }
