"""What a study would cost, without running anything: time by operations, and disk."""

from collections.abc import Sequence
from typing import NamedTuple

from albert_keras.models.weight_count import count_weights
from albert_keras.planning.plan import BYTES_PER_PIECE, RECORD_BYTES, RECORD_BYTES_PER_POSITION
from albert_keras.report import bytes_text
from albert_keras.studies.corpus import HELD_OUT_FRACTION
from albert_keras.studies.planned import PlannedRun, PlannedStudy
from albert_keras.studies.updates import TEACHER_COST, stage_factor, updates_in_time
from albert_keras.training.cost.flops import training_flops
from albert_keras.training.cost.peak import measure_peak
from data_pipeline.progress import format_duration
from data_pipeline.text.corpus import corpus_ranges

#: Fraction of the measured peak that training is assumed to reach; small models reach less.
_ASSUMED_MFU = 0.3
#: Text that one process turns into records in a second, in bytes; a cautious figure.
_TEXT_PER_SECOND = 1e6
#: Weights and two moments, in float32.
_BYTES_PER_WEIGHT = 12


class RunCost(NamedTuple):
    """What one training of a run would cost."""

    name: str
    parameters: int  # of the whole model
    updates: int
    seconds: float
    checkpoint_bytes: float  # of all checkpoints that are kept


class StudyCost(NamedTuple):
    """What a study would cost."""

    title: str
    scale: str
    runs: tuple[RunCost, ...]
    seeds: int
    seconds: float  # of all trainings, one after the other
    preparation_seconds: float
    disk_bytes: float
    peak_tflops: float

    def to_dict(self):
        """Returns plain values for JSON (dict)."""
        return self._asdict() | {"runs": [run._asdict() for run in self.runs]}

    def lines(self):
        """Yields the costs as text."""
        number = len(self.runs) * self.seeds
        yield f"{self.title}, scale {self.scale}: {number} trainings, {self.seeds} of each run"
        for run in self.runs:
            yield (
                f"  {run.name}: {run.parameters / 1e6:,.2f} million weights, {run.updates:,} "
                f"updates, {format_duration(run.seconds)} for each seed"
            )
        yield (
            f"time: about {format_duration(self.preparation_seconds)} for vocabularies and "
            f"records, and {format_duration(self.seconds)} for all trainings on one machine like "
            "this one"
        )
        yield (
            f"  (assumed: {_ASSUMED_MFU:.0%} of {self.peak_tflops:.3g} TFLOP/s, the measured "
            "peak of this machine; scoring takes additional time)"
        )
        yield f"disk: about {bytes_text(self.disk_bytes)} in total"


def study_cost(
    planned: PlannedStudy,
    corpus: Sequence[str],
    eval_corpus: Sequence[str],
    corpus_format: str,
    minutes: float | None,
    seeds: int,
) -> StudyCost:
    """Estimates time and disk of a study; the arguments are the same as for `study`.

    Raises:
        InputError: If the text cannot be read.
    """
    size = _size_of(corpus, corpus_format)
    held_out = _size_of(eval_corpus, corpus_format) if eval_corpus else size * HELD_OUT_FRACTION
    training = size if eval_corpus else size - held_out
    peak = measure_peak("float32", seconds=1.0) or 1e12
    rate = _ASSUMED_MFU * peak
    alone = {run.name: _flops(run) / rate for run in planned.runs}
    seconds = {
        run.name: alone[run.name] + (TEACHER_COST * alone[run.teacher] if run.teacher else 0.0)
        for run in planned.runs
    }
    updates = updates_in_time(planned, seconds, minutes)
    runs = tuple(_cost(run, updates[run.name], seconds[run.name]) for run in planned.runs)
    bytes_of_records = _record_bytes(planned, training, held_out)
    shares = sum(run.corpus_share * run.data.copies for run in _different(planned.runs))
    text = training * shares + held_out
    return StudyCost(
        title=planned.study.title,
        scale=planned.scale,
        runs=runs,
        seeds=seeds,
        seconds=seeds * sum(run.seconds for run in runs),
        preparation_seconds=text / _TEXT_PER_SECOND,
        disk_bytes=bytes_of_records + seeds * sum(run.checkpoint_bytes for run in runs),
        peak_tflops=peak / 1e12,
    )


def _size_of(sources, corpus_format):
    return sum(part.num_bytes for part in corpus_ranges(list(sources), corpus_format))


def _flops(run: PlannedRun):
    config, data = run.config, run.data
    shape = config.albert_config(run.vocabulary.size)
    lengths = data.max_seq_length, data.num_predictions
    has_head = data.label_objective != "none" and config.training.sentence_order_weight > 0
    flops = training_flops(shape, config.training.batch_size, *lengths, sentence_head=has_head)
    return flops * stage_factor(run)


def _cost(run, updates, seconds):
    shape = run.config.albert_config(run.vocabulary.size)
    weights = count_weights(shape).total
    kept = run.config.training.keep_checkpoints + 2  # the best one, and one that is being written
    bytes_kept = weights * _BYTES_PER_WEIGHT * kept
    return RunCost(run.name, weights, updates, updates * seconds, bytes_kept)


def _different(runs):
    """Returns runs with different records."""
    found = {}
    for run in runs:
        key = (run.vocabulary.model_dump_json(), run.data.model_dump_json(), run.corpus_share)
        found.setdefault(key, run)
    return list(found.values())


def _record_bytes(planned, training, held_out):
    def size(data, text):
        records = data.copies * text / BYTES_PER_PIECE / max(1, data.max_seq_length - 3)
        return records * (RECORD_BYTES + RECORD_BYTES_PER_POSITION * data.max_seq_length)

    total = sum(size(run.data, training * run.corpus_share) for run in _different(planned.runs))
    sets = [*planned.held_out.values(), *(planned.followed(run) for run in planned.runs)]
    different = {data.model_dump_json(): data for data in sets}
    return total + sum(size(data, held_out) for data in different.values())
