"""How fast records are read, and what sampling masks adds."""

import logging
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from albert_keras.report import table
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.data import train_on, write_documentation
from tests.benchmarks.measure import in_turn, machine, machine_lines, ratios, shown, summary

logger = logging.getLogger(__name__)

_SEED = 12345
#: Batches read before the clock starts: TensorFlow builds its graph, and buffers fill.
_WARM_UP = 8
#: A step far into training; resuming there must cost nothing.
FAR_STEP = 1_000_000


def benchmark_read(
    records: Path | None = None,
    batch_size: int = 32,
    steps: int = 2000,
    repeats: int = 5,
) -> dict:
    """Measures the reader of a folder of records; the runs take turns.

    Args:
        records: Folder; None builds records from the documentation of the installed packages.
        steps: Batches of one run.
        repeats: Runs of each kind.

    Returns:
        dict for JSON: `machine`, `records`, `reading` (of "bytes only" and, as far as the records
        allow, "static masks" and "dynamic masks"; summaries of `sequences_per_second`,
        `microseconds` and `cpu_microseconds`), `dynamic_cost` (a fraction, or None), `first_batch`.
    """
    if records is None:
        with tempfile.TemporaryDirectory() as folder:
            logger.info("building records of the documentation of the installed packages")
            corpus = [write_documentation(folder)]
            tokenizer = Tokenizer.load(train_on(corpus, "auto", 8000, Path(folder, "tokenizer")))
            out = Path(folder, "records")
            build_records(corpus, tokenizer, out, PretrainingDataConfig())
            return benchmark_read(out, batch_size, steps, repeats)
    facts = machine()
    folder, records = records, RecordFiles(records)
    settings = records, batch_size, steps
    actions = {"bytes only": partial(_read_bytes, *settings)}
    if records.info.static_masks:
        actions["static masks"] = partial(_read_batches, *settings, "static")
    if (records.folder / TOKENIZER_FOLDER).is_dir():
        actions["dynamic masks"] = partial(_read_batches, *settings, "dynamic")
    runs = in_turn(actions, repeats)
    firsts = in_turn(
        {str(step): partial(_first_batch, folder, batch_size, step) for step in (0, FAR_STEP)},
        repeats,
    )
    count = batch_size * steps
    reading = {
        kind: {
            "sequences_per_second": summary(count / seconds for seconds, _ in found),
            "microseconds": summary(seconds / count * 1e6 for seconds, _ in found),
            "cpu_microseconds": summary(cpu / count * 1e6 for _, cpu in found),
        }
        for kind, found in runs.items()
    }
    cost = None
    if {"static masks", "dynamic masks"} <= runs.keys():
        dynamic, static = (
            [seconds for seconds, _ in runs[f"{kind} masks"]] for kind in ("dynamic", "static")
        )
        cost = {name: ratio - 1 for name, ratio in ratios(dynamic, static).items()}
    return {
        "machine": facts,
        "records": {
            "folder": str(folder),
            "num_records": len(records),
            "max_seq_length": records.info.max_seq_length,
            "batch_size": batch_size,
            "steps": steps,
            "repeats": repeats,
        },
        "reading": reading,
        "dynamic_cost": cost,
        "first_batch": {step: summary(found) for step, found in firsts.items()},
    }


def _read_bytes(records, batch_size, steps):
    order = [training_numbers(step, batch_size, len(records), _SEED) for step in range(steps)]
    started = _clocks()
    for numbers in order:
        records.read(numbers)
    return (_clocks() - started).tolist()


def _read_batches(records, batch_size, steps, masks):
    batches = iter(training_dataset(records, batch_size, _SEED, masks=masks))
    for _ in range(_WARM_UP):
        next(batches)
    started = _clocks()
    for _ in range(steps):
        next(batches)
    return (_clocks() - started).tolist()


def _first_batch(folder, batch_size, step):
    started = time.perf_counter()
    next(iter(training_dataset(RecordFiles(folder), batch_size, _SEED, first_step=step)))
    return time.perf_counter() - started


def _clocks():
    return np.array([time.perf_counter(), time.process_time()])


def read_lines(result):
    """Yields the lines of the result of `benchmark_read`."""
    records = result["records"]
    yield from machine_lines(result["machine"])
    yield (
        f"records: {records['num_records']} of S = {records['max_seq_length']}; "
        f"{records['steps']} batches of {records['batch_size']}, median of {records['repeats']} "
        "runs [lowest..highest]"
    )
    yield ""
    rows = [
        (
            kind,
            shown(reading["sequences_per_second"], ",.0f"),
            shown(reading["microseconds"], ".1f"),
            shown(reading["cpu_microseconds"], ".1f"),
        )
        for kind, reading in result["reading"].items()
    ]
    yield from table(("", "sequences/s", "µs each", "CPU µs each"), rows)
    yield ""
    if result["dynamic_cost"]:
        yield f"dynamic masks cost {shown(result['dynamic_cost'], '+.1%')} time"
    for step, seconds in result["first_batch"].items():
        yield f"first batch at step {step}: {shown(seconds, '.2f')} s"
