"""How fast records are read, what drawing masks adds, and how much of it a model needs."""

import logging
import tempfile
import time
from functools import partial

import numpy as np
from tensorflow import keras

from albert_keras.benchmarks.documentation import build_documentation
from albert_keras.benchmarks.measure import in_turn, machine, ratios, summary
from albert_keras.benchmarks.unmasked import copy_unmasked
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.distributed.strategy import build_strategy, choose_precision
from albert_keras.training.pretraining_step import build_step
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)

_SEED = 12345
#: Read before the clock starts: TensorFlow builds its graph, and buffers fill.
_WARM_UP = 8
#: A step far into training; what lies before must cost nothing.
FAR_STEP = 1_000_000
#: Steps of the model: some to warm up, then those that count.
_MODEL_WARM_UP, _MODEL_STEPS = 2, 5


def benchmark_read(
    folder=None, batch_size=32, steps=2000, repeats=5, model="albert-base", model_batch_size=2
):
    """Measures the reader of a folder of records.

    The runs take turns; README.md tells what each number means.

    Args:
        folder: str, Path or None. Folder of records. None builds some of the documentation of the
            installed Python packages.
        batch_size: int. B of the reader.
        steps: int. Batches of one run.
        repeats: int. Runs of each kind.
        model: str or None. Name of an `AlbertConfig` whose training the reader is compared with.
        model_batch_size: int. B of that training.

    Returns:
        dict for JSON: `machine`, `records`, `reading` (of "order only", "bytes only" and, as far as
        the records allow, "static masks", "dynamic masks" on a copy of the records without masks
        and "dynamic over static" on the records themselves), `dynamic_cost` and
        `dynamic_cpu_cost` (shares, or None), `first_batch`, `training` (or None).

    Raises:
        InputError: If there are no such records, or model and records do not go together.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            logger.info("building records of the documentation of the installed packages")
            records = build_documentation(temporary)
            return benchmark_read(records, batch_size, steps, repeats, model, model_batch_size)
    facts = machine()
    records = RecordFiles(folder)
    settings = records, batch_size, steps
    actions = {
        "order only": partial(_draw_order, *settings),
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
        {
            f"first batch at step {step}": partial(_first_batch, folder, batch_size, step)
            for step in (0, FAR_STEP)
        },
        repeats,
    )
    num_sequences = batch_size * steps
    reading = {kind: _reading_result(found, num_sequences) for kind, found in runs.items()}
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
        "first_batch": {name.split()[-1]: summary(found) for name, found in firsts.items()},
        "training": model and _training_result(records, model, model_batch_size, reading),
    }


def _draw_order(records, batch_size, steps):
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


def _reading_result(runs, num_sequences):
    return {
        "sequences_per_second": summary(num_sequences / run["seconds"] for run in runs),
        "microseconds": summary(run["seconds"] / num_sequences * 1e6 for run in runs),
        "cpu_microseconds": summary(run["cpu_seconds"] / num_sequences * 1e6 for run in runs),
    }


def _cost(runs, clock):
    """Returns by how much dynamic masks take longer than static ones, as shares, or None."""
    if not {"static masks", "dynamic masks"} <= runs.keys():
        return None
    static, dynamic = (
        [run[clock] for run in runs[kind]] for kind in ("static masks", "dynamic masks")
    )
    return {name: ratio - 1 for name, ratio in ratios(dynamic, static).items()}


def _training_result(records, model, batch_size, reading):
    logger.info("training %s at batch size %d", model, batch_size)
    seconds = _step_seconds(records, model, batch_size)
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


def _step_seconds(records, model, batch_size):
    config = PretrainingConfig.of({}, size=model, batch_size=batch_size)
    strategy = build_strategy()
    config = config.resolved(choose_precision(strategy), records.info.objective != "none")
    with strategy.scope():
        step = build_step(config, config.albert_config(records.info.vocab_size))
        clock = _StepClock()
        step.fit(
            training_dataset(records, batch_size, _SEED),
            steps_per_epoch=_MODEL_WARM_UP + _MODEL_STEPS,
            callbacks=[clock],
            verbose=0,
        )
    return summary(np.diff(clock.ends[_MODEL_WARM_UP - 1 :]).tolist())


class _StepClock(keras.callbacks.Callback):
    """Notes when each step of `fit` has ended."""

    def __init__(self):
        super().__init__()
        self.ends = []

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())
