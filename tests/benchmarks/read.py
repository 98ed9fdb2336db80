"""How fast records are read, and what sampling masks adds."""

import time
from functools import partial
from pathlib import Path

from albert_keras.report import table
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.measure import in_turn, machine, machine_lines, ratios, shown, summary

_SEED = 12345
#: Batches read before the clock starts: TensorFlow builds its graph, and buffers fill.
_WARM_UP = 8
#: A step far into training; resuming there must cost nothing.
FAR_STEP = 1_000_000


def benchmark_read(
    records: Path,
    batch_size: int = 32,
    steps: int = 2000,
    repeats: int = 5,
) -> dict:
    """Measures the reader of a folder of records; the runs take turns.

    Args:
        steps: Batches of one run.
        repeats: Runs of each kind.

    Returns:
        dict for JSON: `machine`, `records`, `reading` (records per second of "bytes only" and, as
        far as the records allow, "static masks" and "dynamic masks"), `dynamic_cost` (a fraction,
        or None), `first_batch` (seconds).
    """
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
    reading = {
        kind: summary(batch_size * steps / seconds for seconds in found)
        for kind, found in runs.items()
    }
    cost = None
    if {"static masks", "dynamic masks"} <= runs.keys():
        found = ratios(runs["dynamic masks"], runs["static masks"])
        cost = {name: ratio - 1 for name, ratio in found.items()}
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
    started = time.perf_counter()
    for numbers in order:
        records.read(numbers)
    return time.perf_counter() - started


def _read_batches(records, batch_size, steps, masks):
    batches = iter(training_dataset(records, batch_size, _SEED, masks=masks))
    for _ in range(_WARM_UP):
        next(batches)
    started = time.perf_counter()
    for _ in range(steps):
        next(batches)
    return time.perf_counter() - started


def _first_batch(folder, batch_size, step):
    started = time.perf_counter()
    next(iter(training_dataset(RecordFiles(folder), batch_size, _SEED, first_step=step)))
    return time.perf_counter() - started


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
    rows = [(kind, shown(speed, ",.0f")) for kind, speed in result["reading"].items()]
    yield from table(("", "records/s"), rows)
    yield ""
    if result["dynamic_cost"]:
        yield f"dynamic masks cost {shown(result['dynamic_cost'], '+.1%')} time"
    for step, seconds in result["first_batch"].items():
        yield f"first batch at step {step}: {shown(seconds, '.2f')} s"
