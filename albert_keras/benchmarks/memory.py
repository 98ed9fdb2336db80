"""Peak memory of a training step: kept blocks, blocks computed again, a batch in parts."""

import functools
import logging
import time

import numpy as np

from albert_keras.benchmarks.measure import in_new_process, in_turn, machine, peak_mb, summary

logger = logging.getLogger(__name__)

_STEPS = 3


def benchmark_memory(
    model="albert-base",
    batch_size=8,
    max_seq_length=512,
    precision="float32",
    parts=4,
    repeats=1,
):
    """Measures memory and time of a pre-training step in processes of their own.

    Args:
        model: str. Name of an `AlbertConfig`.
        batch_size: int. B.
        max_seq_length: int. S; 15 % of it are predicted.
        precision: str. See `TrainingConfig`.
        parts: int. Parts of the batch in the rows that accumulate; has to divide B.
        repeats: int. Processes of each kind.

    Returns:
        dict for JSON: `machine`, `settings`, and `kinds`: for each the `peak_mb` of the process,
        its `step_mb` above what it held before the first step, and `seconds` of a step.
    """
    facts = machine()
    kinds = {
        "blocks kept": {},
        "computed again": {"recompute": True},
        f"{parts} parts": {"accumulation_steps": parts},
        f"computed again, {parts} parts": {"recompute": True, "accumulation_steps": parts},
    }
    runs = in_turn(
        {
            name: functools.partial(
                in_new_process, _measure, model, batch_size, max_seq_length, precision, settings
            )
            for name, settings in kinds.items()
        },
        repeats,
    )
    return {
        "machine": facts,
        "settings": {
            "model": model,
            "batch_size": batch_size,
            "max_seq_length": max_seq_length,
            "precision": precision,
            "repeats": repeats,
        },
        "kinds": {
            name: {
                measure: summary(run[measure] for run, _ in found)
                for measure in ("peak_mb", "step_mb", "seconds")
            }
            for name, found in runs.items()
        },
    }


def _measure(model, batch_size, max_seq_length, precision, settings):
    from albert_keras.training.build import build_step
    from albert_keras.training.config import PretrainingConfig
    from albert_keras.training.strategy import build_strategy, choose_precision

    strategy = build_strategy("single")
    config = PretrainingConfig.of(
        {"training": {"precision": precision, **settings}}, size=model, batch_size=batch_size
    )
    albert_config = config.albert_config(30_000)
    step = build_step(config.resolved(choose_precision(strategy)), albert_config)
    features = _features(batch_size, max_seq_length, albert_config.vocab_size)
    before = peak_mb()
    function = step.make_train_function()
    function(iter([features]))
    started = time.perf_counter()
    for _ in range(_STEPS):
        function(iter([features]))
    seconds = (time.perf_counter() - started) / _STEPS
    return {"peak_mb": peak_mb(), "step_mb": peak_mb() - before, "seconds": seconds}


def _features(batch_size, max_seq_length, vocab_size):
    import tensorflow as tf

    rng = np.random.default_rng(0)
    shape, predictions = (batch_size, max_seq_length), (batch_size, round(0.15 * max_seq_length))
    positions = rng.integers(0, max_seq_length, predictions)
    features = {
        "input_ids": rng.integers(0, vocab_size, shape),
        "input_mask": np.ones(shape),
        "segment_ids": rng.integers(0, 2, shape),
        "masked_lm_positions": positions,
        "masked_lm_ids": rng.integers(0, vocab_size, predictions),
        "sentence_order_labels": rng.integers(0, 2, batch_size),
    }
    features = {name: tf.constant(values, tf.int32) for name, values in features.items()}
    return features | {
        "masked_lm_weights": tf.ones(predictions),
        "example_weights": tf.ones(batch_size),
    }
