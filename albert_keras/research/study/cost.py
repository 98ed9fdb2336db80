"""What a study would cost, without running anything: time by operations, and disk."""

from collections.abc import Iterator, Sequence
from typing import Any

from albert_keras.machine.plan import RECORD_BYTES, RECORD_BYTES_PER_POSITION
from albert_keras.models.weight_count import count_weights
from albert_keras.report import bytes_text
from albert_keras.research.study.materials import HELD_OUT_FRACTION
from albert_keras.research.study.planned import PlannedStudy
from albert_keras.research.study.updates import (
    TEACHER_COST,
    stage_factor,
    step_flops,
    updates_in_time,
)
from albert_keras.training.peak import measure_peak
from data_pipeline.progress import format_duration
from data_pipeline.text.corpus import corpus_ranges

#: Bytes of English text per token, at a vocabulary of 30,000.
_BYTES_PER_TOKEN = 4.3
#: Fraction of the measured peak that training is assumed to reach; small models reach less.
_ASSUMED_MFU = 0.3
#: Text that one process turns into records in a second, in bytes; a cautious figure.
_TEXT_PER_SECOND = 1e6
#: Weights and two moments, in float32.
_BYTES_PER_WEIGHT = 12


def study_cost(
    planned: PlannedStudy,
    corpus: Sequence[str],
    eval_corpus: Sequence[str],
    corpus_format: str,
    minutes: float | None,
    seeds: int,
) -> dict[str, Any]:
    """Estimates time and disk of a study; the arguments are the same as for `study`.

    Returns:
        dict for JSON. `title`, `scale`, `seeds`; `runs`, a list of dicts with `name`, `parameters`
        (of the whole model), `updates`, and for one training `seconds` and `checkpoint_bytes`;
        `seconds` of all trainings, one after the other; `preparation_seconds`; `disk_bytes`;
        `peak_tflops` of this machine.

    Raises:
        InputError: If the text cannot be read.
    """
    size = _size_of(corpus, corpus_format)
    held_out = _size_of(eval_corpus, corpus_format) if eval_corpus else size * HELD_OUT_FRACTION
    training = size if eval_corpus else size - held_out
    peak = measure_peak("float32", seconds=1.0) or 1e12
    alone = {
        run.name: step_flops(run) * stage_factor(run) / (_ASSUMED_MFU * peak)
        for run in planned.runs
    }
    seconds = {
        run.name: alone[run.name] + (TEACHER_COST * alone[run.teacher] if run.teacher else 0.0)
        for run in planned.runs
    }
    updates = updates_in_time(planned, seconds, minutes)
    runs = [_cost(run, updates[run.name], seconds[run.name]) for run in planned.runs]
    different = {
        (run.vocabulary.model_dump_json(), run.data.model_dump_json(), run.corpus_share): run
        for run in planned.runs
    }.values()
    sets = [*planned.held_out.values(), *map(planned.followed, planned.runs)]
    sets = {data.model_dump_json(): data for data in sets}.values()
    disk = sum(_record_bytes(run.data, training * run.corpus_share) for run in different)
    disk += sum(_record_bytes(data, held_out) for data in sets)
    text = training * sum(run.corpus_share * run.data.copies for run in different) + held_out
    return {
        "title": planned.study.title,
        "scale": planned.scale,
        "runs": runs,
        "seeds": seeds,
        "seconds": seeds * sum(run["seconds"] for run in runs),
        "preparation_seconds": text / _TEXT_PER_SECOND,
        "disk_bytes": disk + seeds * sum(run["checkpoint_bytes"] for run in runs),
        "peak_tflops": peak / 1e12,
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
        f"time: about {format_duration(cost['preparation_seconds'])} for vocabularies and records, "
        f"and {format_duration(cost['seconds'])} for all trainings on one machine like this one, "
        f"at {_ASSUMED_MFU:.0%} of its measured peak, {cost['peak_tflops']:.3g} TFLOP/s"
    )
    yield f"disk: about {bytes_text(cost['disk_bytes'])} in total"


def _size_of(sources, corpus_format):
    return sum(part.num_bytes for part in corpus_ranges(list(sources), corpus_format))


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


def _record_bytes(data, text):
    records = data.copies * text / _BYTES_PER_TOKEN / max(1, data.max_seq_length - 3)
    return records * (RECORD_BYTES + RECORD_BYTES_PER_POSITION * data.max_seq_length)
