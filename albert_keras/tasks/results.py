"""The result of a fine-tuning: stored as `results.json` in its folder, and as lines of text."""

import json
import math
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from albert_keras.formats.detection import AFTER_LOSS, RESULTS
from albert_keras.report import count_of, table
from albert_keras.runs.trained_data import ROWS, Overlap
from albert_keras.tasks.kinds import OWN_TASKS
from albert_keras.tasks.metrics import (
    Interval,
    count_caution,
    score_texts,
    thresholds_text,
)
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json, with_digest

#: Tasks whose scores are in percent.
_IN_PERCENT = ("squad1", "squad2")
#: Labels that are named in one message.
_LABELS_SHOWN = 8

#: Scores by split, then by metric.
Scores = dict[str, dict[str, int | float]]


class SeedResult(NamedTuple):
    """One training."""

    seed: int
    path: str  # of its folder, which contains its best weights
    best_step: int  # the step of the best weights
    last_step: int
    scores: Scores  # of the best step; the first split determined the best step
    interval: Interval  # 95 % bootstrap interval of the main metric on the first split
    collapse: str | None = None  # set if all answers are the same, see `Task.collapse`
    stopped_early: bool = False  # because scores no longer improved
    seconds: float = 0.0
    #: By the name of a baseline, the 95 % interval of the difference of the main metric to it, on
    #: the first split, see `Task.lead`.
    leads: dict[str, Interval] = {}


class Verdict(NamedTuple):
    """Whether a model is worth using, compared with the best of the simple baselines."""

    is_better: bool | None  # None if the difference may be due to chance
    sentence: str


class FinetuneResult(NamedTuple):
    """A fine-tuning: the same training with one or several seeds, and its baselines.

    Every dict is plain JSON and never changed.
    """

    path: str  # its folder
    task: str
    metric: str  # the main metric, `Task.metric`; more is better
    seeds: Annotated[tuple[SeedResult, ...], Field(min_length=1)]
    #: Of the simple baselines by name, see `baseline_answers`.
    baselines: dict[str, Scores] = {}
    thresholds: dict[str, float] = {}  # returned by `Task.fit_thresholds`
    origin: str = ""  # the initial weights
    loaded: tuple[str, ...] = ()  # what was loaded from the initial weights, line by line
    files: dict[str, Any] = {}  # other files that were written
    examples: dict[str, int] = {}  # the number of examples of each split
    positive_class: str | None = None  # the class that the score `f1` refers to, if there is one
    #: By split, the fields of an `Overlap`: how many of its examples were trained on. Empty if
    #: that is unknown.
    overlap: dict[str, dict[str, Any]] = {}
    absent: dict[str, list[str]] = {}  # labels without an example, by split, also of training

    @property
    def model(self) -> Any:
        """The model of the best seed with its best weights, which answers texts and is saved."""
        # Here, as it imports TensorFlow, which results themselves do without.
        from albert_keras.formats.open_weights import open_weights

        return open_weights(self.path).build()


_RESULT = TypeAdapter(FinetuneResult)


def first_split(result: FinetuneResult) -> str:
    """Returns the split that determines the best step and the best seed."""
    return next(iter(result.seeds[0].scores))


def best_seed(result: FinetuneResult) -> SeedResult:
    """Returns the training with the highest main metric on the first split, of equals the first."""
    split = first_split(result)
    return max(result.seeds, key=lambda seed: seed.scores[split][result.metric])


def baseline_scores(result: FinetuneResult, split: str | None = None) -> dict[str, float]:
    """Returns the main score of each baseline on a split, by default the first one, by its name."""
    split = split or first_split(result)
    return {
        name: scores[split][result.metric]
        for name, scores in result.baselines.items()
        if split in scores
    }


def as_json(result: FinetuneResult) -> dict:
    """Returns a result as plain JSON: dicts, lists, strings, numbers."""
    values = result._asdict() | {"seeds": [seed._asdict() for seed in result.seeds]}
    # Numbers of NumPy become those of Python.
    return json.loads(json.dumps(values, default=lambda value: value.item(), allow_nan=False))


def save_results(folder: str | Path, result: FinetuneResult) -> Path:
    """Writes `results.json` into an existing folder; ValueError if a score is not finite."""
    path = Path(folder) / RESULTS
    write_json(path, with_digest(as_json(result)), ensure_ascii=False)
    return path


def read_results(folder: str | Path) -> FinetuneResult:
    """Reads `results.json`; InputError if there is none, or it is damaged."""
    path = Path(folder) / RESULTS
    if not path.is_file():
        raise InputError(f"`{folder}` must be a complete fine-tuning: it has no `{RESULTS}`.")
    values = read_json(path, AFTER_LOSS)
    try:
        return _RESULT.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InputError(f"`{path}` is damaged: {place}: {first['msg']}.") from error


def result_of(run: Path) -> FinetuneResult | None:
    """Returns the result of the fine-tuning that a run is a seed of.

    None if the run was moved, was trained from random weights, or its fine-tuning is not complete.
    """
    folder = run.absolute().parent
    result = read_results(folder) if (folder / RESULTS).is_file() else None
    return result if result and run.name in {seed.path for seed in result.seeds} else None


class Row(NamedTuple):
    """A score in a table, formatted."""

    split: str
    name: str  # of what has this score: a seed, or a baseline
    score: str
    interval: str = ""  # its 95 % interval
    difference: str = ""  # of the model to this baseline, with its 95 % interval


#: The columns of a table of rows; the second one is called like the metric.
INTERVAL, DIFFERENCE = "95 % interval", "difference of the model"


def rows(result: FinetuneResult) -> list[Row]:
    """Returns the main score of each split: of each seed, of their median, and of the baselines."""
    number, found = formatter(result.task), []
    several, main = len(result.seeds) > 1, first_split(result)
    for split in result.seeds[0].scores:
        values = [seed.scores[split][result.metric] for seed in result.seeds]
        for seed, value in zip(result.seeds, values, strict=True):
            name = f"seed {seed.seed}" if several else "this model"
            interval = interval_text(seed.interval, number) if split == main else ""
            found.append(Row(split, f"{name}, {_step(seed)}", number(value), interval))
        median = statistics.median(values)
        if several:
            deviation = number(statistics.stdev(values))
            name = f"this model, median (standard deviation {deviation})"
            found.append(Row(split, name, number(median)))
        for name, score in baseline_scores(result, split).items():
            lead = _lead(result, name) if split == main else None
            difference = difference_text(median - score, lead, number)
            found.append(Row(split, name, number(score), difference=difference))
    return found


def lines(result: FinetuneResult) -> list[str]:
    """Describes a result: a table of rows for each split, warnings, and the verdict."""
    shown = []
    for split, scores in result.seeds[0].scores.items():
        count = result.examples.get(split) or scores.get("total", 0)
        found = [row for row in rows(result) if row.split == split]
        shown += score_lines(result.task, result.metric, int(count), found)
        others = {name: _median(result, split, name) for name in scores}
        shown += other_lines(others, result.metric, result.positive_class, result.task)
    if result.thresholds:
        shown.append(f"thresholds: {thresholds_text(result.thresholds)}")
    shown += [f"warning: {warning}" for warning in cautions(result)]
    verdict = verdict_of(result)
    return [*shown, verdict.sentence] if verdict else shown


def score_lines(task: str, metric: str, count: int, found: list[Row]) -> list[str]:
    """Returns the title of the rows of a split, and their table."""
    header = ("", metric, INTERVAL, DIFFERENCE)
    cells = [row[1:] for row in found]
    width = max(number for row in cells for number, cell in enumerate(row) if cell) + 1
    title = f"{task}, {found[0].split}: {count_of(count, 'example')}"
    return [title, *table(header[:width], [row[:width] for row in cells])]


def other_lines(
    scores: Mapping[str, float], metric: str, positive_class: str | None, task: str
) -> list[str]:
    """Returns the scores besides the main one, as `score_texts`, in at most one line."""
    others = {name: value for name, value in scores.items() if name not in (metric, "total")}
    texts = score_texts(others, positive_class, formatter(task))
    return [f"  also {', '.join(texts)}"] if texts else []


def cautions(result: FinetuneResult) -> list[str]:
    """Returns the warnings about a result."""
    found = []
    for split, fields in result.overlap.items():
        overlap = Overlap.of(fields)
        sentence = overlap.sentence(ROWS, f" of {split}")
        if overlap.is_total:
            found.append(f"{sentence}: these are training scores")
        elif overlap.normalised:
            found.append(f"{sentence}: these are not held-out scores")
    for split, labels in result.absent.items():
        listing = ", ".join(f"`{label}`" for label in labels[:_LABELS_SHOWN])
        more = f" and {len(labels) - _LABELS_SHOWN} more" if len(labels) > _LABELS_SHOWN else ""
        found.append(f"{split} has no example of {listing}{more}: scores of such labels are 0")
    count = result.examples.get(first_split(result))
    if count and (caution := count_caution(count, result.metric)):
        if result.task in OWN_TASKS:
            caution += "; `--cross-validate` scores all rows of a `train` without a `dev`"
        found.append(caution)
    found += [f"seed {one.seed} collapsed: {one.collapse}" for one in result.seeds if one.collapse]
    return found


def verdict_of(result: FinetuneResult) -> Verdict | None:
    """Compares a fine-tuning with the best of its simple baselines on its first split.

    The interval of the difference decides: where it excludes 0, the verdict is sure.

    Returns:
        Verdict or None. None without any baseline.
    """
    found = baseline_scores(result)
    if not found:
        return None
    name, best = max(found.items(), key=lambda item: item[1])
    score, lead = _main_score(result)[0], _lead(result, name)
    number, count = formatter(result.task), result.examples.get(first_split(result))
    examples = f" on {count_of(count, 'example')}" if count else ""
    both = (
        f"{result.metric} {number(score)} versus {number(best)} of the {name}{examples}, "
        f"difference {difference_text(score - best, lead, number)}"
    )
    if lead.low > 0:
        return Verdict(True, f"worth using: {both}")
    if lead.high < 0:
        return Verdict(False, f"not worth using: {both}")
    difference = score - best
    if not count or not difference:
        return Verdict(None, f"undecided: {both}")
    # The error of a difference falls with the root of the number of examples.
    error = difference - lead.low if difference > 0 else lead.high - difference
    enough = _rounded_up(count * (error / difference) ** 2)
    return Verdict(
        None, f"undecided: {both}; if it stays, about {enough} examples are enough to be sure"
    )


def _rounded_up(count):
    """Returns a count as text, with two digits that are not zero."""
    unit = 10 ** (len(f"{count:.0f}") - 2)
    return f"{math.ceil(count / unit) * unit:,.0f}"


def _main_score(result):
    """Returns the main score on the first split, the median, and the seed that has it."""
    split = first_split(result)
    ordered = sorted(result.seeds, key=lambda seed: seed.scores[split][result.metric])
    return _median(result, split, result.metric), ordered[(len(ordered) - 1) // 2]


def _lead(result, name):
    """Returns the 95 % interval of the difference of the main score to that of a baseline."""
    score, seed = _main_score(result)
    # The median of an even number of seeds is between two of them.
    shift = score - seed.scores[first_split(result)][result.metric]
    return Interval(*(bound + shift for bound in seed.leads[name]))


def formatter(task: str) -> Callable[[float], str]:
    """Returns a function that formats a score: of SQuAD in percent, with fewer digits."""
    digits = 1 if task in _IN_PERCENT else 3
    return lambda value: f"{value:.{digits}f}"


def interval_text(interval: Interval, number: Callable[[float], str]) -> str:
    """Returns an interval of a score as text."""
    return f"[{number(interval.low)}, {number(interval.high)}]"


def difference_text(
    difference: float, lead: Interval | None, number: Callable[[float], str]
) -> str:
    """Returns a difference with its sign, and with its interval if that is known."""

    def signed(value):
        return ("-" if value < 0 else "+") + number(abs(value))

    bounds = f" [{signed(lead.low)}, {signed(lead.high)}]" if lead else ""
    return signed(difference) + bounds


def _median(result, split, metric) -> float:
    return statistics.median(seed.scores[split][metric] for seed in result.seeds)


def _step(seed):
    early = ", stopped early" if seed.stopped_early else ""
    collapsed = ", collapsed" if seed.collapse else ""
    return f"step {seed.best_step:,} of {seed.last_step:,}{early}{collapsed}"
