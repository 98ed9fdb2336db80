"""Peak memory of a training step: blocks kept or computed again, a batch in parts, peers."""

import functools
import time

from albert_keras.benchmarks.contest import hold_contest
from albert_keras.benchmarks.measure import in_new_process, in_turn, machine, peak_mb, summary
from albert_keras.benchmarks.shapes import make_shape
from albert_keras.benchmarks.trainers import chosen_peers, ours, trainers

_STEPS = 3


def benchmark_memory(
    model="albert-base",
    batch_size=8,
    max_seq_length=512,
    precision="float32",
    parts=4,
    repeats=1,
    peers=(),
):
    """Measures memory and time of a pre-training step in processes of their own.

    Args:
        model: str. See `make_shape`.
        batch_size: int. B.
        max_seq_length: int. S; 15 % of it are predicted.
        precision: str. See `TrainingConfig`.
        parts: int. Parts of the batch in the rows that accumulate; has to divide B.
        repeats: int. Processes of each kind.
        peers: sequence of str. As in `benchmark_train`; each has one process.

    Returns:
        dict for JSON: `machine`, `settings`, and `kinds`: for each the `peak_mb` of the process,
        its `step_mb` above what it held before the first step, and `seconds` of a step; `peers`,
        what `hold_contest` tells of each.

    Raises:
        InputError: If a setting cannot be used; with peers the precision has to be one of theirs.
    """
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    others = []
    if chosen_peers(peers):
        found = trainers(shape, [precision], peers)
        others = [contestant for contestant in found if contestant.name != "ours"]
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


def measure_step(shape, precision, settings):
    """Measures a training step in this process, which should have done nothing before.

    Args:
        shape: Shape.
        precision: str. See `TrainingConfig`.
        settings: dict. More of `TrainingConfig`.

    Returns:
        dict. `peak_mb` of the process, `step_mb` of it above what was held before the first step,
        and `seconds` of a step.
    """
    prepared = ours.prepare(shape, precision, settings)
    before = peak_mb()
    prepared.run()
    started = time.perf_counter()
    for _ in range(_STEPS):
        prepared.run()
    seconds = (time.perf_counter() - started) / _STEPS
    return {"peak_mb": peak_mb(), "step_mb": peak_mb() - before, "seconds": seconds}
