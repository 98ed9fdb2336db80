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
from albert_keras.tasks.metrics import (
    FEW_EXAMPLES,
    Interval,
    count_caution,
    difference_interval,
    score_texts,
    tuned_text,
)
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json, with_digest

#: Tasks whose scores are in percent.
_IN_PERCENT = ("squad1", "squad2")
#: What the majority baseline answers, by the main metric, if it is not a class or a tag.
_GUESSES = {
    **dict.fromkeys(("pearson", "spearman"), "mean of the training scores"),
    "micro_f1": "labels that most training rows have",
}
#: Baseline, by the name of its field -> what it is called; of "tagging" the bag of words.
_BASELINES = {"bag_of_words": "bag of words", "random": "same model from random weights"}
_TAGGING = {"majority": "most frequent tag of each word"}  # of older versions
_TAGGING |= {"bag_of_words": "linear model of words and their neighbours"}
#: Labels that are named in one message.
_LABELS_SHOWN = 8

#: A baseline: the name of its field in a result, its main score, and the 95 % interval of the lead
#: of a model over it.
Rival = tuple[str, float, Interval]


class SeedResult(NamedTuple):
    """One training."""

    seed: int
    path: str  # of its folder, which contains its best weights
    best_step: int  # the step of the best weights
    last_step: int
    #: By split, then by metric, of the best step; the first split determined the best step.
    scores: dict[str, dict[str, int | float]]
    interval: Interval  # 95 % bootstrap interval of the main metric on the first split
    collapse: str | None = None  # set if all answers are the same, see `Task.collapse`
    stopped_early: bool = False  # because scores no longer improved
    seconds: float = 0.0
    tied_steps: tuple[int, ...] = ()  # only in results of older versions
    #: By the name of a baseline, the 95 % interval of the lead over it, of the main metric on the
    #: first split, see `Task.lead`.
    leads: dict[str, Interval] = {}


class BagOfWords(NamedTuple):
    """The scores of the bag of words, see `WordModel`."""

    scores: dict[str, dict[str, int | float]]  # by split, then by metric
    interval: Interval  # 95 % bootstrap interval of the main metric on the first split
    examples: int  # the number of training examples that it was trained on
    seconds: float = 0.0


class Verdict(NamedTuple):
    """Whether a model is worth using, compared with the best of the simple baselines."""

    is_better: bool  # by more than chance
    sentence: str
    better: str = ""  # the name of a baseline, as in a Rival, that is better by more than chance


class FinetuneResult(NamedTuple):
    """A fine-tuning: the same training with one or several seeds, and its baselines.

    Every dict is plain JSON and never changed.
    """

    path: str  # its folder
    task: str
    metric: str  # the main metric, `Task.metric`; more is better
    seeds: Annotated[tuple[SeedResult, ...], Field(min_length=1)]
    #: Scores, by split, of the most frequent answer; None if the task has none.
    majority: dict[str, dict[str, int | float]] | None = None
    random: SeedResult | None = None  # the same model trained from random weights
    tuned: dict[str, float] = {}  # returned by `Task.tuned_answers`
    origin: str = ""  # the initial weights
    loaded: tuple[str, ...] = ()  # what was loaded from the initial weights, line by line
    files: dict[str, Any] = {}  # other files that were written
    examples: dict[str, int] = {}  # the number of examples of each split
    bag_of_words: BagOfWords | None = None  # None if it was skipped, or does not suit the task
    positive_class: str | None = None  # the class that the score `f1` refers to, if there is one
    #: By split, the fields of an `Overlap`: how many of its examples were trained on. Empty if
    #: that is unknown.
    overlap: dict[str, dict[str, Any]] = {}
    #: Scores of further baselines, by name and split: those of similarity.
    baselines: dict[str, dict[str, dict[str, int | float]]] = {}
    absent: dict[str, list[str]] = {}  # labels without an example, by split, also of training
    only_label: str | None = None  # the one that all examples of the first split have

    @property
    def model(self) -> Any:
        """The model of the best seed with its best weights, which answers texts and is saved."""
        from albert_keras.tasks.finetuned import open_finetuned

        return open_finetuned(self.path)


_RESULT = TypeAdapter(FinetuneResult)


def first_split(result: FinetuneResult) -> str:
    """Returns the split that determines the best step and the best seed."""
    return next(iter(result.seeds[0].scores))


def best_seed(result: FinetuneResult) -> SeedResult:
    """Returns the training with the highest main metric on the first split, of equals the first."""
    split = first_split(result)
    return max(result.seeds, key=lambda seed: seed.scores[split][result.metric])


def baselines_of(result: FinetuneResult, split: str) -> list[tuple[str, float, Interval | None]]:
    """Returns the name, the main score on a split, and the interval of that, of each baseline.

    The name is the one of its field, or in `FinetuneResult.baselines`.
    """
    words, random = result.bag_of_words, result.random
    found = [("majority", result.majority or {}, None)]
    found += [("bag_of_words", words.scores, words.interval)] if words else []
    found += [(name, scores, None) for name, scores in result.baselines.items()]
    found += [("random", random.scores, random.interval)] if random else []
    return [
        (name, scores[split][result.metric], interval)
        for name, scores, interval in found
        if split in scores
    ]


def rivals_of(result: FinetuneResult) -> list[Rival]:
    """Returns the baselines on the first split that need no network of this size, with leads."""
    found = baselines_of(result, first_split(result))
    return [(one[0], one[1], _lead(result, *one)) for one in found if one[0] != "random"]


def _lead(result, name, other, interval):
    """Returns the interval of the lead over a baseline; older versions did not compute it."""
    score, seed = _main_score(result)
    if name not in seed.leads:
        return difference_interval(score, seed.interval, other, interval)
    # The median of an even number of seeds is between two of them.
    shift = score - seed.scores[first_split(result)][result.metric]
    return Interval(*(bound + shift for bound in seed.leads[name]))


def baseline_scores(result: FinetuneResult) -> dict[str, float]:
    """Returns the main score of each baseline on the first split, by the name of its field."""
    found = baselines_of(result, first_split(result))
    return {name: score for name, score, _ in found if name not in result.baselines}


def as_json(result: FinetuneResult) -> dict:
    """Returns a result as plain JSON: dicts, lists, strings, numbers."""
    values = result._asdict() | {
        "seeds": [seed._asdict() for seed in result.seeds],
        "random": result.random and result.random._asdict(),
        "bag_of_words": result.bag_of_words and result.bag_of_words._asdict(),
    }
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
        result = _RESULT.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InputError(f"`{path}` is damaged: {place}: {first['msg']}.") from error
    splits = list(result.seeds[0].scores)
    for seed in result.seeds:
        complete = all(result.metric in scores for scores in seed.scores.values())
        if not splits or list(seed.scores) != splits or not complete:
            raise InputError(
                f"`{path}` is damaged: seed {seed.seed} must have the score `{result.metric}` on "
                "every split."
            )
    return result


class Row(NamedTuple):
    """A score in a table, formatted."""

    split: str
    name: str
    score: str
    interval: str  # 95 % interval, or ""
    difference: str  # of the model to this baseline, or ""


def lines(result: FinetuneResult) -> list[str]:
    """Describes a result: the main metric of each split, and below it its baselines.

    Before that, if there are several seeds, a row for each. Warnings come last, or that the model
    is worth using.
    """
    shown = _seed_rows(result) if len(result.seeds) > 1 else []
    for split in result.seeds[0].scores:
        differences = [
            (row.name, row.score, f"difference {row.difference}")
            for row in rows(result)
            if row.split == split and row.difference
        ]
        shown += [_headline(result, split), *table((), differences)]
        shown += _other_metrics(result, split)
    if result.tuned:
        shown.append(f"tuned: {tuned_text(result.tuned)}")
    shown += [f"warning: {warning}" for warning in cautions(result)]
    verdict = verdict_of(result)
    return [*shown, verdict.sentence] if verdict and verdict.is_better else shown


def rows(result: FinetuneResult) -> list[Row]:
    """Returns the main score of each split, the median of all seeds, followed by its baselines."""
    number, count, found = formatter(result.task), len(result.seeds), []
    for split in result.seeds[0].scores:
        ours, is_first = _median(result, split), split == first_split(result)
        name = "this model" if count == 1 else f"this model, median of {count} seeds"
        bounds = result.seeds[0].interval if count == 1 and is_first else None
        found.append(Row(split, name, number(ours), _shown(number, bounds), ""))
        for name, score, bounds in baselines_of(result, split):
            interval = _shown(number, bounds if is_first else None)
            difference = ("+" if ours >= score else "-") + number(abs(ours - score))
            name = _name(result.task, result.metric, name)
            found.append(Row(split, name, number(score), interval, difference))
    return found


def _name(task, metric, baseline):
    names = _BASELINES | {"majority": _GUESSES.get(metric, "majority class")}
    return (names | _TAGGING if task == "tagging" else names).get(baseline, baseline)


def cautions(result: FinetuneResult) -> list[str]:
    """Returns the warnings about a result, last that the model is not worth using."""
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
        found.append(caution)
    for seed in result.seeds:
        if seed.collapse:
            found.append(
                f"seed {seed.seed} collapsed: {seed.collapse}. On SST-2, LAMB at 3e-3 and AdamW at "
                "2e-4 did this, and half the rate, or `optimizer.name=lamb` with "
                "`optimizer.lr=1e-3`, did not."
            )
    if result.random and result.random.collapse:
        found.append(
            f"the same model from random weights collapsed: {result.random.collapse}. A comparison "
            "with it is not meaningful."
        )
    if result.random:
        what, number = "the same model from random weights", formatter(result.task)
        score, split = _main_score(result)[0], first_split(result)
        other = result.random.scores[split][result.metric]
        both = f"{result.metric} {number(score)} versus {number(other)}"
        if score <= other:
            found.append(f"no better than {what}: {both}")
        elif _lead(result, "random", other, result.random.interval).low <= 0:
            found.append(f"the lead over {what} may be due to chance: {both}")
    verdict = verdict_of(result)
    return [*found, verdict.sentence] if verdict and not verdict.is_better else found


def verdict_of(result: FinetuneResult) -> Verdict | None:
    """Returns the verdict about a fine-tuning, on its first split; None without any baseline."""
    examples, score = result.examples.get(first_split(result)), _main_score(result)[0]
    found = rivals_of(result)
    return judge(result.task, result.metric, score, examples, found, result.only_label)


def judge(
    task: str,
    metric: str,
    score: float,
    examples: int | None,
    rivals: list[Rival],
    only_label: str | None = None,
) -> Verdict | None:
    """Compares a score with the best of simple baselines.

    Args:
        task: Name of the task.
        examples: Number of examples; None if it is unknown.
        rivals: As `rivals_of` returns them. Without any there is no verdict. Scores may differ by
            chance if the interval of the lead has 0 inside.
        only_label: The label that all examples have, if there is one.
    """
    if not rivals:
        return None
    rows = "these examples" if examples is None else count_of(examples, "example")
    if only_label is not None:
        return Verdict(False, f"nothing can be shown with {rows} that all have `{only_label}`")
    number, points = formatter(task), 1 if task in _IN_PERCENT else 100
    baseline, best, lead = max(rivals, key=lambda rival: rival[1])
    name = _name(task, metric, baseline)
    both = f"{metric} {number(score)} versus {number(best)}"
    difference, low, high = (points * value for value in (score - best, *lead))
    is_ahead = difference > 0
    if difference < 0:
        difference, low, high = -difference, -high, -low
    is_few = examples is not None and count_caution(examples, metric) is not None
    if is_few or low <= 0:
        side = "no difference," if not difference else "ahead by" if is_ahead else "behind by"
        by = f"{side} {difference:.1f} points [{low:+.1f}, {high:+.1f}]"
        be = "is" if examples == 1 else "are"
        enough = _enough(examples, difference, low) if examples and difference else ""
        few = f"{rows} {be} too few to be sure{enough}"
        return Verdict(False, f"{by}; {few}: {both} of the {name}")
    by = f"by {difference:.1f} points [{low:.1f}, {high:.1f}]"
    if is_ahead:
        return Verdict(True, f"worth using: better than the {name} {by}: {both} on {rows}")
    sentence = f"not worth using: use the {name}, which is better {by}: {both} on {rows}"
    return Verdict(False, sentence, baseline)


def _enough(examples, difference, low):
    """Says how many examples a difference needs to be shown: its error falls with their root."""
    count = max(examples * ((difference - low) / difference) ** 2, FEW_EXAMPLES)
    unit = 10 ** (len(f"{count:.0f}") - 2)
    return f" (if the difference stays, about {math.ceil(count / unit) * unit:,} would do)"


def _main_score(result):
    """Returns the main score on the first split, the median, and the seed that has it."""
    split = first_split(result)
    ordered = sorted(result.seeds, key=lambda seed: seed.scores[split][result.metric])
    return _median(result, split), ordered[(len(ordered) - 1) // 2]


def formatter(task: str) -> Callable[[float], str]:
    """Returns a function that formats a score: of SQuAD in percent, with fewer digits."""
    digits = 1 if task in _IN_PERCENT else 3
    return lambda value: f"{value:.{digits}f}"


def _shown(number, interval):
    return f"[{number(interval[0])}, {number(interval[1])}]" if interval else ""


def _median(result, split, metric=None) -> float:
    return statistics.median(seed.scores[split][metric or result.metric] for seed in result.seeds)


def _step(seed):
    early = ", stopped early" if seed.stopped_early else ""
    return f"step {seed.best_step:,} of {seed.last_step:,}{early}"


def _headline(result, split):
    number, [first, *others] = formatter(result.task), result.seeds
    prefix = f"{split}: " if len(first.scores) > 1 else ""
    count = result.examples.get(split) or first.scores[split].get("total")
    examples = f" on {count_of(int(count), 'example')}" if count else ""
    if others:
        values = [seed.scores[split][result.metric] for seed in result.seeds]
        collapsed = sum(1 for seed in result.seeds if seed.collapse)
        return (
            f"{prefix}{result.metric} median {number(statistics.median(values))}, "
            f"{number(min(values))} to {number(max(values))} over {len(values)} seeds"
            f"{f' ({collapsed} collapsed)' if collapsed else ''}{examples} "
            f"(standard deviation {number(statistics.stdev(values))})"
        )
    line = f"{prefix}{result.metric} {number(first.scores[split][result.metric])}"
    if split == first_split(result):
        return f"{line} {_shown(number, first.interval)}{examples} (best at {_step(first)})"
    return line + examples


def _seed_rows(result):
    number, splits = formatter(result.task), list(result.seeds[0].scores)
    names = splits if len(splits) > 1 else [result.metric]
    cells = [["seed", names[0], "95 % interval", *names[1:], "best at"]]
    for seed in result.seeds:
        first, *others = (number(seed.scores[split][result.metric]) for split in splits)
        step = _step(seed) + (", collapsed" if seed.collapse else "")
        cells.append([str(seed.seed), first, _shown(number, seed.interval), *others, step])
    return table((), cells, left=(-1,), indent=0)


def other_scores(
    scores: Mapping[str, float],
    metric: str,
    positive_class: str | None,
    number: Callable[[float], str],
) -> list[str]:
    """Returns the scores besides the main one as `score_texts`."""
    others = {name: value for name, value in scores.items() if name not in (metric, "total")}
    return score_texts(others, positive_class, number)


def _other_metrics(result, split):
    medians = {name: _median(result, split, name) for name in result.seeds[0].scores[split]}
    shown = other_scores(medians, result.metric, result.positive_class, formatter(result.task))
    title = "medians of" if len(result.seeds) > 1 else "also"
    return [f"  {title} {', '.join(shown)}"] if shown else []
