"""How fast records are read, and what sampling masks adds."""

import time
from functools import partial
from pathlib import Path

from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks.measure import (
    in_turn,
    machine,
    ratios,
    runs_lines as read_lines,  # noqa: F401
    summary,
)

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
        dict for JSON, see `runs_lines`. Masks are measured as far as the records allow it.
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
    steps_read = {
        f"first batch at step {step:,}": partial(_first_batch, folder, batch_size, step)
        for step in (0, FAR_STEP)
    }
    found = {
        kind: {"records/s": summary(batch_size * steps / seconds for seconds in times)}
        for kind, times in runs.items()
    }
    if {"static masks", "dynamic masks"} <= runs.keys():
        compared = ratios(runs["dynamic masks"], runs["static masks"])
        found["dynamic masks"]["time of static"] = compared
    firsts = in_turn(steps_read, repeats)
    return {
        "machine": facts,
        "about": (
            f"{len(records):,} records of S = {records.info.max_seq_length}, "
            f"{steps} batches of {batch_size}, {repeats} runs of each"
        ),
        "runs": found | {name: {"seconds": summary(times)} for name, times in firsts.items()},
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
