"""Times a training step by the default optimizer on the device of this machine."""

import time

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.training.build import build_pretraining
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.strategy import choose_precision

_STEPS = 10


def step_seconds(
    config: AlbertConfig, batch_size: int, max_seq_length: int, predictions: int
) -> float:
    """Returns the seconds of an update: the median of ten, after the graph is built.

    Args:
        config: Of the model.
        batch_size: Records of an update, without padding.
        max_seq_length: S.
        predictions: Predicted tokens of a record, P.
    """
    sections = {
        "model": config.as_settings(),
        "training": {"steps": _STEPS, "batch_size": batch_size},
        "optimizer": {"warmup_steps": 1},
    }
    settings = PretrainingConfig.of(sections)
    settings = settings.resolved(choose_precision(tf.distribute.get_strategy()))
    keras.backend.clear_session()
    train = build_pretraining(settings, config).make_train_function()
    features = _features(batch_size, max_seq_length, predictions)
    seconds = []
    for _ in range(1 + _STEPS):
        started = time.perf_counter()
        float(train(iter([features]))["loss"])  # waits for the device
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:]))


def _features(rows, length, predictions):
    """Returns a batch without padding, whose content does not matter for the time."""
    zeros = {name: tf.zeros([rows, length], tf.int32) for name in ("input_ids", "segment_ids")}
    return zeros | {
        "input_mask": tf.ones([rows, length], tf.int32),
        "masked_lm_positions": tf.tile(tf.range(predictions)[None], [rows, 1]),
        "masked_lm_ids": tf.zeros([rows, predictions], tf.int32),
        "masked_lm_weights": tf.ones([rows, predictions]),
        "sentence_order_labels": tf.zeros([rows], tf.int32),
        "example_weights": tf.ones([rows]),
    }
