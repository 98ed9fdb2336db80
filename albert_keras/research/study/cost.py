"""What the trainings of a study would cost, without running anything: time and checkpoints."""

from collections.abc import Iterator
from typing import Any

from albert_keras.models.weight_count import count_weights
from albert_keras.report import bytes_text
from albert_keras.research.study.planned import PlannedStudy
from albert_keras.research.study.updates import (
    TEACHER_COST,
    step_flops,
    updates_in_time,
)
from albert_keras.training.peak import measure_peak
from data_pipeline.progress import format_duration

#: Fraction of the measured peak that training is assumed to reach; small models reach less.
_ASSUMED_MFU = 0.3
#: Weights and two moments, in float32.
_BYTES_PER_WEIGHT = 12


def study_cost(planned: PlannedStudy, minutes: float | None, seeds: int) -> dict[str, Any]:
    """Estimates time and disk of the trainings; the arguments are the same as for `study`.

    Returns:
        dict for JSON. `title`, `scale`, `seeds`; `runs`, a list of dicts with `name`, `parameters`
        (of the whole model), `updates`, and for one training `seconds` and `checkpoint_bytes`;
        `seconds` and `disk_bytes` of all trainings; `peak_tflops` of this machine.
    """
    peak = measure_peak("float32", seconds=1.0) or 1e12
    alone = {run.name: step_flops(run) / (_ASSUMED_MFU * peak) for run in planned.runs}
    seconds = {
        run.name: alone[run.name] + (TEACHER_COST * alone[run.teacher] if run.teacher else 0.0)
        for run in planned.runs
    }
    updates = updates_in_time(planned, seconds, minutes)
    runs = [_cost(run, updates[run.name], seconds[run.name]) for run in planned.runs]
    return {
        "title": planned.study.title,
        "scale": planned.scale,
        "runs": runs,
        "seeds": seeds,
        "seconds": seeds * sum(run["seconds"] for run in runs),
        "disk_bytes": seeds * sum(run["checkpoint_bytes"] for run in runs),
        "peak_tflops": peak / 1e12,
    }


def _cost(run, updates, seconds):
    weights = count_weights(run.config.albert_config(run.vocabulary.size)).total
    kept = run.config.training.keep_checkpoints + 2  # the best one, and one that is being written
    return {
        "name": run.name,
        "parameters": weights,
        "updates": updates,
        "seconds": updates * seconds,
        "checkpoint_bytes": weights * _BYTES_PER_WEIGHT * kept,
    }


def cost_lines(cost: dict[str, Any]) -> Iterator[str]:
    """Yields the result of `study_cost` as text."""
    number = len(cost["runs"]) * cost["seeds"]
    yield f"{cost['title']}, scale {cost['scale']}: {number} trainings, {cost['seeds']} of each run"
    for run in cost["runs"]:
        yield (
            f"  {run['name']}: {run['parameters'] / 1e6:,.2f} million weights, "
            f"{run['updates']:,} updates, {format_duration(run['seconds'])} for each seed"
        )
    yield (
        f"time: about {format_duration(cost['seconds'])} for all trainings on one machine like "
        f"this one, at {_ASSUMED_MFU:.0%} of its measured peak, {cost['peak_tflops']:.3g} TFLOP/s"
    )
    yield f"disk: about {bytes_text(cost['disk_bytes'])} for the checkpoints, besides the records"
