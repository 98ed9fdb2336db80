"""How fast records are read, what sampling masks adds, and how much of it a model needs."""

import logging
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from tensorflow import keras

from albert_keras.training.config import PretrainingConfig
from albert_keras.training.distributed.strategy import build_strategy, choose_precision
from albert_keras.training.pretraining_step import build_step
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.corpus import build_documentation, copy_unmasked
from tests.benchmarks.measure import in_turn, machine, ratios, summary
from tests.benchmarks.report import machine_lines, spread, table

logger = logging.getLogger(__name__)

_SEED = 12345
#: Batches read before the clock starts: TensorFlow builds its graph, and buffers fill.
_WARM_UP = 8
#: A step far into training; resuming there must cost nothing.
FAR_STEP = 1_000_000
#: Steps of the model: some to warm up, then those that count.
_MODEL_WARM_UP, _MODEL_STEPS = 2, 5


def benchmark_read(
    records: Path | None = None,
    batch_size: int = 32,
    steps: int = 2000,
    repeats: int = 5,
    model: str = "albert-base",
    model_batch_size: int = 2,
) -> dict:
    """Measures the reader of a folder of records.

    The runs take turns; README.md explains the numbers.

    Args:
        records: Folder; None builds records from the documentation of the installed packages.
        steps: Batches of one run.
        repeats: Runs of each kind.
        model: Name of an `AlbertConfig` whose training the reader is compared with, or "none".
        model_batch_size: Batch size of that training.

    Returns:
        dict for JSON: `machine`, `records`, `reading` (of "order only", "bytes only" and, as far as
        the records allow, "static masks", "dynamic masks" on a copy of the records without masks
        and "dynamic over static" on the records themselves), `dynamic_cost` and
        `dynamic_cpu_cost` (fractions, or None), `first_batch`, `training` (or None).
    """
    if records is None:
        with tempfile.TemporaryDirectory() as temporary:
            logger.info("building records of the documentation of the installed packages")
            records = build_documentation(temporary)
            return benchmark_read(records, batch_size, steps, repeats, model, model_batch_size)
    facts = machine()
    folder, records = records, RecordFiles(records)
    settings = records, batch_size, steps
    actions = {
        "order only": partial(_sample_order, *settings),
        "bytes only": partial(_read_bytes, *settings),
    }
    if records.info.static_masks:
        actions["static masks"] = partial(_read_batches, *settings, "static")
    if (records.folder / TOKENIZER_FOLDER).is_dir():
        dynamic = partial(_read_batches, *settings, "dynamic")
        actions["dynamic masks"] = dynamic
    with tempfile.TemporaryDirectory() as temporary:
        if "static masks" in actions and "dynamic masks" in actions:
            unmasked = RecordFiles(copy_unmasked(records, temporary, batch_size * steps))
            actions["dynamic masks"] = partial(_read_batches, unmasked, *settings[1:], "dynamic")
            actions["dynamic over static"] = dynamic
        runs = in_turn(actions, repeats)
    firsts = in_turn(
        {str(step): partial(_first_batch, folder, batch_size, step) for step in (0, FAR_STEP)},
        repeats,
    )
    num_sequences = batch_size * steps
    reading = {
        kind: {
            "sequences_per_second": summary(num_sequences / run["seconds"] for run in found),
            "microseconds": summary(run["seconds"] / num_sequences * 1e6 for run in found),
            "cpu_microseconds": summary(run["cpu_seconds"] / num_sequences * 1e6 for run in found),
        }
        for kind, found in runs.items()
    }
    return {
        "machine": facts,
        "records": {
            "folder": str(folder),
            "num_records": len(records),
            "max_seq_length": records.info.max_seq_length,
            "max_predictions_per_seq": records.info.max_predictions_per_seq,
            "batch_size": batch_size,
            "steps": steps,
            "repeats": repeats,
        },
        "reading": reading,
        "dynamic_cost": _cost(runs, "seconds"),
        "dynamic_cpu_cost": _cost(runs, "cpu_seconds"),
        "first_batch": {step: summary(found) for step, found in firsts.items()},
        "training": None
        if model == "none"
        else _training_result(records, model, model_batch_size, reading),
    }


def _sample_order(records, batch_size, steps):
    started = _clocks()
    for step in range(steps):
        training_numbers(step, batch_size, len(records), _SEED)
    return _since(started)


def _read_bytes(records, batch_size, steps):
    order = [training_numbers(step, batch_size, len(records), _SEED) for step in range(steps)]
    started = _clocks()
    for numbers in order:
        records.read(numbers)
    return _since(started)


def _read_batches(records, batch_size, steps, masks):
    batches = iter(training_dataset(records, batch_size, _SEED, masks=masks))
    for _ in range(_WARM_UP):
        next(batches)
    started = _clocks()
    for _ in range(steps):
        next(batches)
    return _since(started)


def _first_batch(folder, batch_size, step):
    started = time.perf_counter()
    next(iter(training_dataset(RecordFiles(folder), batch_size, _SEED, first_step=step)))
    return time.perf_counter() - started


def _clocks():
    return np.array([time.perf_counter(), time.process_time()])


def _since(started):
    seconds, cpu_seconds = (_clocks() - started).tolist()
    return {"seconds": seconds, "cpu_seconds": cpu_seconds}


def _cost(runs, clock):
    """Returns how much longer dynamic masks take than static ones, as fractions, or None."""
    if not {"static masks", "dynamic masks"} <= runs.keys():
        return None
    static, dynamic = (
        [run[clock] for run in runs[kind]] for kind in ("static masks", "dynamic masks")
    )
    return {name: ratio - 1 for name, ratio in ratios(dynamic, static).items()}


def _training_result(records, model, batch_size, reading):
    logger.info("training %s at batch size %d", model, batch_size)
    config = PretrainingConfig.of({}, size=model, batch_size=batch_size)
    strategy = build_strategy()
    config = config.resolved(choose_precision(strategy), records.info.objective != "none")
    with strategy.scope():
        step = build_step(config, config.albert_config(records.info.vocab_size))
        ends = []
        clock = keras.callbacks.LambdaCallback(
            on_batch_end=lambda batch, logs: ends.append(time.perf_counter())
        )
        step.fit(
            training_dataset(records, batch_size, _SEED),
            steps_per_epoch=_MODEL_WARM_UP + _MODEL_STEPS,
            callbacks=[clock],
            verbose=0,
        )
    seconds = summary(np.diff(ends[_MODEL_WARM_UP - 1 :]).tolist())
    consumed = batch_size / seconds["median"]
    return {
        "model": model,
        "batch_size": batch_size,
        "step_seconds": seconds,
        "sequences_per_second": consumed,
        "times_faster": {
            kind: result["sequences_per_second"]["median"] / consumed
            for kind, result in reading.items()
            if kind.endswith("masks")
        },
    }


def read_lines(result):
    """Yields the lines of the result of `benchmark_read`."""
    records = result["records"]
    yield from machine_lines(result["machine"])
    yield (
        f"records: {records['num_records']} of S = {records['max_seq_length']}, "
        f"P = {records['max_predictions_per_seq']}; {records['steps']} batches of "
        f"{records['batch_size']}, median of {records['repeats']} runs [lowest..highest]"
    )
    yield ""
    yield from table(
        ["", "sequences/s", "µs each", "CPU µs each"],
        [
            [
                kind,
                spread(reading["sequences_per_second"], ",.0f"),
                spread(reading["microseconds"], ".1f"),
                spread(reading["cpu_microseconds"], ".1f"),
            ]
            for kind, reading in result["reading"].items()
        ],
    )
    yield ""
    if result["dynamic_cost"]:
        cost, cpu = (spread(result[name], "+.1%") for name in ("dynamic_cost", "dynamic_cpu_cost"))
        yield f"dynamic masks cost {cost} time, {cpu} processor time"
    for step, seconds in result["first_batch"].items():
        yield f"first batch at step {step}: {spread(seconds, '.2f')} s"
    if training := result["training"]:
        yield (
            f"a step of {training['model']} takes {spread(training['step_seconds'], '.2f')} s at "
            f"batch size {training['batch_size']}: {training['sequences_per_second']:.2f} "
            "sequences/s"
        )
        for kind, factor in training["times_faster"].items():
            yield f"  {kind}: {factor:,.0f} times as fast as training needs"
