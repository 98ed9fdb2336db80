"""Times a training step on the device of this machine, for plans on a GPU.

On a CPU a step takes as long as its products at a measured rate; on a GPU small models are far from
that, so each is timed.
"""

import time

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.machine.ladder import Stage, run_settings
from albert_keras.training.build import build_pretraining
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.strategy import choose_precision

_STEPS = 10


def step_seconds(config: AlbertConfig, stage: Stage) -> float:
    """Returns the seconds of an update: the median of ten, after the graph is built.

    Args:
        config: Of the model.
        stage: Its batches.

    Raises:
        tf.errors.ResourceExhaustedError: If the batch does not fit into memory.
    """
    settings = PretrainingConfig.of(run_settings(config, _STEPS, [stage]))
    settings = settings.resolved(choose_precision(tf.distribute.get_strategy()))
    keras.backend.clear_session()
    train = build_pretraining(settings, config).make_train_function()
    features = _features(stage)
    seconds = []
    for _ in range(1 + _STEPS):
        started = time.perf_counter()
        float(train(iter([features]))["loss"])  # waits for the device
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:]))


def _features(stage):
    """Returns a batch without padding, whose content does not matter for the time."""
    rows, length, predictions = stage.batch_size, stage.max_seq_length, stage[1]
    zeros = {name: tf.zeros([rows, length], tf.int32) for name in ("input_ids", "segment_ids")}
    return zeros | {
        "input_mask": tf.ones([rows, length], tf.int32),
        "masked_lm_positions": tf.tile(tf.range(predictions)[None], [rows, 1]),
        "masked_lm_ids": tf.zeros([rows, predictions], tf.int32),
        "masked_lm_weights": tf.ones([rows, predictions]),
        "sentence_order_labels": tf.zeros([rows], tf.int32),
        "example_weights": tf.ones([rows]),
    }
