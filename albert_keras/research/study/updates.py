"""How many updates each run of a study makes, by its settings or its time, and what they cost."""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from albert_keras.models.weight_count import count_weights
from albert_keras.report import bytes_text
from albert_keras.research.study.materials import Materials
from albert_keras.research.study.planned import PlannedRun, PlannedStudy
from albert_keras.runs.log_file import read_log
from albert_keras.training.flops import training_flops
from albert_keras.training.peak import measure_peak
from albert_keras.training.pretrain import pretrain
from data_pipeline.progress import format_duration

logger = logging.getLogger(__name__)

#: Steps of a trial; the first ones build the graph, and the fastest of the others counts.
_TRIAL_STEPS = 8
#: A teacher takes part in a step with its forward pass, a third of the work of its own step.
_TEACHER_COST = 1 / 3
#: Fraction of the measured peak that training is assumed to reach; small models reach less.
_ASSUMED_MFU = 0.3
#: Weights and two moments, in float32.
_BYTES_PER_WEIGHT = 12


def updates_in_time(
    planned: PlannedStudy,
    seconds_per_step: dict[str, float],
    minutes: float | None,
    known: dict[str, int] | None = None,
) -> dict[str, int]:
    """Returns the updates of each run.

    With equal sequences, the updates of the reference run are scaled by the batch sizes.

    Args:
        seconds_per_step: By the name of the run. Not used if `minutes` is None, unless the runs
            have equal time.
        minutes: Time for the training of one run; None takes the updates of the settings. With
            equal updates or sequences the slowest run takes this time, with equal time every run.
        known: Updates that an earlier call has chosen for some of the runs; these stay, and others
            are scaled like them.
    """
    reference, known = planned.reference, known or {}
    updates = {run.name: run.config.training.steps for run in planned.runs}
    if planned.study.equal == "sequences":
        sequences = updates[reference.name] * reference.config.training.batch_size
        sizes = {run.name: run.config.training.batch_size for run in planned.runs}
        updates = {name: max(1, round(sequences / size)) for name, size in sizes.items()}
    if planned.study.equal == "time":
        seconds = updates[reference.name] * seconds_per_step[reference.name]
        seconds = seconds if minutes is None else 60 * minutes
        return {name: max(1, int(seconds / seconds_per_step[name])) for name in updates} | known
    if minutes is None:
        return updates
    factors = [known[name] / updates[name] for name in updates if name in known]
    if not factors:
        factors = [60 * minutes / (updates[name] * seconds_per_step[name]) for name in updates]
    return {name: max(1, round(min(factors) * number)) for name, number in updates.items()} | known


def needs_times(planned: PlannedStudy, minutes: float | None) -> bool:
    """Returns whether the updates depend on the time of a step."""
    return minutes is not None or planned.study.equal == "time"


def measure_seconds(planned: PlannedStudy, materials: dict[str, Materials]) -> dict[str, float]:
    """Measures the time of an update of each run on this machine by a few steps, in seconds."""
    alone = {run.name: _trial(run, materials[run.name].records) for run in planned.runs}
    return _with_teachers(planned, alone)


def _with_teachers(planned, alone):
    """Returns the seconds of an update with its teacher, by run; `alone` are those without."""
    return {
        run.name: alone[run.name] + (_TEACHER_COST * alone[run.teacher] if run.teacher else 0.0)
        for run in planned.runs
    }


def _trial(run: PlannedRun, records: Path) -> float:
    training = run.config.training.replace(
        steps=_TRIAL_STEPS,
        steps_per_execution=1,
        report_every=1,
        checkpoint_every=_TRIAL_STEPS,
        time_budget=None,
    )
    optimizer = run.config.optimizer.replace(warmup_steps=0)
    config = run.config.replace(training=training, optimizer=optimizer)
    with tempfile.TemporaryDirectory(prefix="albert-keras-study-") as folder:
        pretrain(records, Path(folder) / "run", config)
        lines = read_log(Path(folder) / "run")
    seconds = min(line["seconds"] for line in lines[_TRIAL_STEPS // 2 :])
    logger.info("%s: %s per update", run.name, format_duration(seconds))
    return seconds


def step_flops(run: PlannedRun) -> float:
    """Returns the operations of an update of a run."""
    config, data = run.config, run.data
    shape = config.albert_config(run.vocabulary.size)
    has_head = data.label_objective != "none" and config.training.sentence_order_weight > 0
    lengths = data.max_seq_length, data.num_predictions
    return training_flops(shape, config.training.batch_size, *lengths, sentence_head=has_head)


def study_cost(planned: PlannedStudy, minutes: float | None, seeds: int) -> dict[str, Any]:
    """Estimates time and disk of the trainings; the arguments are the same as for `study`.

    Returns:
        dict for JSON. `title`, `scale`, `seeds`; `runs`, a list of dicts with `name`, `parameters`
        (of the whole model), `updates`, and for one training `seconds` and `checkpoint_bytes`;
        `seconds` and `disk_bytes` of all trainings; `peak_tflops` of this machine.
    """
    peak = measure_peak("float32", seconds=1.0) or 1e12
    alone = {run.name: step_flops(run) / (_ASSUMED_MFU * peak) for run in planned.runs}
    seconds = _with_teachers(planned, alone)
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
