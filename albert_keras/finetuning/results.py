"""What a fine-tuning found, kept as `results.json` in its folder."""

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
        path: str. Folder of the training, its best weights in it.
        best_step, last_step: int. Steps after which it was best, and after which it ended.
        scores: dict of str to dict of str to float. By split, then by metric, of the best step; the
            first split decides.
        interval: Interval. 95 % bootstrap interval of the main metric on the first split.
        collapse: str or None. That all answers are the same one, see `Task.collapse`.
        stopped_early: bool. Whether it ended before its time because nothing got better.
        seconds: float. How long it took.
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
    """A fine-tuning: the same training from one or several seeds, and what to compare it with.

    Attributes:
        path: str. Its folder.
        task: str. Name of the task.
        metric: str. The main metric, `Task.metric`; more is better.
        seeds: tuple of SeedResult. At least one.
        majority: dict of str to dict of str to float, or None. Scores, by split, of answering
            without looking; None where no such answer is.
        random: SeedResult or None. The same model trained from random weights.
        tuned: dict of str to float. What `Task.tune` found.
        origin: str. What the weights are from.
        loaded: tuple of str. What became of each weight, line by line.
        files: dict of str. What was written besides, plain JSON.
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
    """How far values lie apart: all float, of `count` int values.

    `standard_deviation` is that of a sample (divided by count - 1), 0 of a single value.
    """

    median: float
    minimum: float
    maximum: float
    standard_deviation: float
    count: int


def spread(values) -> Spread:
    """Returns the spread of a score over seeds; collapsed ones are to be among them.

    Args:
        values: iterable of float.

    Raises:
        InputError: If there is no value.
    """
    values = [float(value) for value in values]
    if not values:
        raise InputError("A spread should be of at least one value. Received: none.")
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(statistics.median(values), min(values), max(values), deviation, len(values))


def first_split(result) -> str:
    """Returns the split that decides."""
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
        raise InputError(f"`{folder}` should be a fine-tuning that came to its end: no `{_NAME}`.")
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
        raise InputError(f"`{path}` is damaged: it should hold at least one seed.")
    splits = list(result.seeds[0].scores)
    for seed in result.seeds:
        complete = all(result.metric in scores for scores in seed.scores.values())
        if not splits or list(seed.scores) != splits or not complete:
            raise InputError(
                f"`{path}` is damaged: seed {seed.seed} should have the score `{result.metric}` "
                "on every split."
            )


def _plain(value):
    if hasattr(value, "item"):  # a number of NumPy's
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not plain JSON: {value!r}")
