"""The result of a fine-tuning, stored as `results.json` in its folder."""

import json
import statistics
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from albert_keras.tasks.metrics import Interval
from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_file

_NAME = "results.json"


class SeedResult(NamedTuple):
    """One training.

    Attributes:
        seed: int.
        path: str. Folder of the training, which contains its best weights.
        best_step, last_step: int. The step of the best weights, and the last one.
        scores: dict of str to dict of str to float. By split, then by metric, of the best step;
            the first split determined the best step.
        interval: Interval. 95 % bootstrap interval of the main metric on the first split.
        collapse: str or None. Set if all answers are the same, see `Task.collapse`.
        stopped_early: bool. Whether it ended early because scores no longer improved.
        seconds: float. Duration.
    """

    seed: int
    path: str
    best_step: int
    last_step: int
    scores: dict[str, dict[str, int | float]]
    interval: Interval
    collapse: str | None = None
    stopped_early: bool = False
    seconds: float = 0.0


class FinetuneResult(NamedTuple):
    """A fine-tuning: the same training with one or several seeds, and its baselines.

    Attributes:
        path: str. Its folder.
        task: str. Name of the task.
        metric: str. The main metric, `Task.metric`; more is better.
        seeds: tuple of SeedResult. At least one.
        majority: dict of str to dict of str to float, or None. Scores, by split, of the
            most frequent answer; None if the task has none.
        random: SeedResult or None. The same model trained from random weights.
        tuned: dict of str to float. Returned by `Task.tune`.
        origin: str. The initial weights.
        loaded: tuple of str. What was loaded from the initial weights, line by line.
        files: dict of str. Other files that were written, plain JSON.
        examples: dict of str to int. How many examples each split of the scores has.
    """

    path: str
    task: str
    metric: str
    seeds: tuple[SeedResult, ...]
    majority: dict[str, dict[str, int | float]] | None = None
    random: SeedResult | None = None
    tuned: dict[str, float] = {}  # none of these is ever changed
    origin: str = ""
    loaded: tuple[str, ...] = ()
    files: dict[str, Any] = {}
    examples: dict[str, int] = {}


_RESULT = TypeAdapter(FinetuneResult)


class Spread(NamedTuple):
    """The spread of `count` (int) values, all float.

    `standard_deviation` is the sample's (divided by count - 1), 0 for a single value.
    """

    median: float
    minimum: float
    maximum: float
    standard_deviation: float
    count: int


def spread(values) -> Spread:
    """Returns the spread of a score over all seeds (iterable of float, not empty)."""
    values = [float(value) for value in values]
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(statistics.median(values), min(values), max(values), deviation, len(values))


def first_split(result) -> str:
    """Returns the split that determines the best step and the best seed."""
    return next(iter(result.seeds[0].scores))


def best_seed(result) -> SeedResult:
    """Returns the training with the highest main metric on the first split, of equals the first."""
    split = first_split(result)
    return max(result.seeds, key=lambda seed: seed.scores[split][result.metric])


def as_json(result) -> dict:
    """Returns a FinetuneResult as plain JSON: dicts, lists, strings, numbers."""
    values = result._asdict() | {
        "seeds": [seed._asdict() for seed in result.seeds],
        "random": result.random and result.random._asdict(),
    }
    return json.loads(json.dumps(values, default=_plain, allow_nan=False))


def save_results(folder, result) -> Path:
    """Writes `results.json`.

    Args:
        folder: str or Path. An existing folder; an older file is replaced.
        result: FinetuneResult.

    Raises:
        ValueError: If a score is not finite.
        OSError: If it cannot be written.
    """
    path = Path(folder) / _NAME
    text = json.dumps(as_json(result), indent=2, ensure_ascii=False)
    with naming(path), whole_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    return path


def read_results(folder) -> FinetuneResult:
    """Reads `results.json`, equal to what was saved.

    Args:
        folder: str or Path. Folder of a fine-tuning.

    Raises:
        InputError: If there is none, or it is damaged.
    """
    path = Path(folder) / _NAME
    if not path.is_file():
        raise InputError(f"`{folder}` must be a complete fine-tuning: it has no `{_NAME}`.")
    try:
        with naming(path):
            result = _RESULT.validate_python(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise InputError(f"`{path}` is damaged: {place}: {first['msg']}.") from error
    except ValueError as error:  # no JSON, no UTF-8
        raise InputError(f"`{path}` is damaged: {error}.") from error
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


def _plain(value):
    if hasattr(value, "item"):  # a NumPy number
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not plain JSON: {value!r}")
