"""Peak memory of a training step: blocks kept or recomputed, a batch in parts, peers."""

import functools
import time
from collections.abc import Sequence

from albert_keras.benchmarks.contest import chosen_peers, hold_contest
from albert_keras.benchmarks.measure import in_new_process, in_turn, machine, peak_mb, summary
from albert_keras.benchmarks.report import failure_lines, machine_lines, table
from albert_keras.benchmarks.shapes import Shape, make_shape
from albert_keras.benchmarks.train import PEERS, contestants_for
from albert_keras.benchmarks.trainers import prepare_ours

_STEPS = 3


def benchmark_memory(
    model: str = "albert-base",
    batch_size: int = 8,
    max_seq_length: int = 512,
    precision: str = "float32",
    parts: int = 4,
    repeats: int = 1,
    peers: Sequence[str] = (),
) -> dict:
    """Measures memory and time of a pre-training step in processes of their own.

    Args:
        model: See `make_shape`.
        precision: See `TrainingConfig`.
        parts: Parts of the batch in the rows that accumulate; must divide the batch size.
        repeats: Processes of each kind.
        peers: As in `benchmark_train`, like the precision then; each has one process.

    Returns:
        dict for JSON: `machine`, `settings`, and `kinds`: for each the `peak_mb` of the process,
        `step_mb`, what was added after the model was built, and `seconds` of a step; `peers`, what
        `hold_contest` returns of each.
    """
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    others = []
    if chosen_peers(peers, PEERS):
        others = [one for one in contestants_for(shape, [precision], peers) if one.name != "ours"]
    kinds = {
        "blocks kept": {},
        "computed again": {"recompute": True},
        f"{parts} parts": {"accumulation_steps": parts},
        f"computed again, {parts} parts": {"recompute": True, "accumulation_steps": parts},
    }
    runs = in_turn(
        {
            name: functools.partial(in_new_process, measure_step, shape, precision, settings)
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
        "peers": hold_contest(others, _STEPS, 0),
    }


def measure_step(shape: Shape, precision: str, settings: dict) -> dict[str, float]:
    """Measures a training step in this process, which must be a new one; see `prepare_ours`.

    Returns `peak_mb` of the process, `step_mb`, what was added after the model was built, and
    `seconds` of a step.
    """
    prepared = prepare_ours(shape, precision, settings)
    before = peak_mb()
    prepared.run()
    started = time.perf_counter()
    for _ in range(_STEPS):
        prepared.run()
    seconds = (time.perf_counter() - started) / _STEPS
    return {"peak_mb": peak_mb(), "step_mb": peak_mb() - before, "seconds": seconds}


def memory_lines(result):
    """Yields the lines of the result of `benchmark_memory`."""
    settings, peers = result["settings"], result.get("peers", {})
    yield from machine_lines(result["machine"])
    yield (
        f"a step of {settings['model']}, B = {settings['batch_size']}, "
        f"S = {settings['max_seq_length']}, {settings['precision']}; "
        f"median of {settings['repeats']} process(es) each"
    )
    yield ""
    rows = {
        name: (kind["peak_mb"]["median"], kind["step_mb"]["median"], kind["seconds"]["median"])
        for name, kind in result["kinds"].items()
    }
    _, kept_mb, kept_seconds = rows["blocks kept"]
    rows |= {
        label: (found["peak_mb"], found["step_mb"], found["seconds"]["median"])
        for label, found in peers.items()
        if "failed" not in found
    }
    yield from table(
        ["", "peak MB", "step alone", "times less", "seconds", "time"],
        [
            [
                name,
                f"{peak:,.0f}",
                f"{step:,.0f}",
                f"{kept_mb / step:.1f}",
                f"{seconds:.2f}",
                f"{seconds / kept_seconds - 1:+.0%}",
            ]
            for name, (peak, step, seconds) in rows.items()
        ],
    )
    yield from failure_lines(peers)
