"""The result of a fine-tuning, stored as `results.json` in its folder."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from albert_keras.tasks.metrics import Interval
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json

_NAME = "results.json"


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


class BagOfWords(NamedTuple):
    """The bag-of-words baseline, see `bag_of_words_answers`."""

    scores: dict[str, dict[str, int | float]]  # by split, then by metric
    interval: Interval  # 95 % bootstrap interval of the main metric on the first split
    examples: int  # the number of training examples that it was trained on
    seconds: float = 0.0


class FinetuneResult(NamedTuple):
    """A fine-tuning: the same training with one or several seeds, and its baselines.

    Every dict is plain JSON and never changed.
    """

    path: str  # its folder
    task: str
    metric: str  # the main metric, `Task.metric`; more is better
    seeds: tuple[SeedResult, ...]  # at least one
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


def baseline_scores(result: FinetuneResult) -> dict[str, float]:
    """Returns the main score of each baseline on the first split, by the name of its field."""
    split, scores = first_split(result), {}
    if result.majority and split in result.majority:
        scores["majority"] = result.majority[split][result.metric]
    for name in ("bag_of_words", "random"):
        baseline = getattr(result, name)
        if baseline and split in baseline.scores:
            scores[name] = baseline.scores[split][result.metric]
    return scores


def as_json(result: FinetuneResult) -> dict:
    """Returns a result as plain JSON: dicts, lists, strings, numbers."""
    values = result._asdict() | {
        "seeds": [seed._asdict() for seed in result.seeds],
        "random": result.random and result.random._asdict(),
        "bag_of_words": result.bag_of_words and result.bag_of_words._asdict(),
    }
    return json.loads(json.dumps(values, default=_number, allow_nan=False))


def save_results(folder: str | Path, result: FinetuneResult) -> Path:
    """Writes `results.json` into an existing folder; ValueError if a score is not finite."""
    path = Path(folder) / _NAME
    write_json(path, as_json(result), ensure_ascii=False)
    return path


def read_results(folder: str | Path) -> FinetuneResult:
    """Reads `results.json`; InputError if there is none, or it is damaged."""
    path = Path(folder) / _NAME
    if not path.is_file():
        raise InputError(f"`{folder}` must be a complete fine-tuning: it has no `{_NAME}`.")
    values = read_json(path)
    try:
        result = _RESULT.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InputError(f"`{path}` is damaged: {place}: {first['msg']}.") from error
    _check_scores(path, result)
    return result


def _check_scores(path, result):
    if not result.seeds:
        raise InputError(f"`{path}` is damaged: it must contain at least one seed.")
    splits = list(result.seeds[0].scores)
    for seed in result.seeds:
        complete = all(result.metric in scores for scores in seed.scores.values())
        if not splits or list(seed.scores) != splits or not complete:
            raise InputError(
                f"`{path}` is damaged: seed {seed.seed} must have the score `{result.metric}` on "
                "every split."
            )


def _number(value):
    return value.item()  # of NumPy
