"""What models give → answers → files that anyone can read."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

_WHITE_SPACE = re.compile(r"\s+")


class ClassAnswer(NamedTuple):
    """A class: `label` str, its `probability`, and `probabilities`, those of all by name."""

    id: str
    label: str
    probability: float
    probabilities: dict[str, float]


class ScoreAnswer(NamedTuple):
    """A score as the model gives it; it may be outside the range of labels."""

    id: str
    score: float


def class_answers(examples, labels, probabilities) -> list[ClassAnswer]:
    """Answers with the most probable class, the first of equals.

    Args:
        examples: list of named tuples with an `id`. N of them.
        labels: sequence of str. Names of C classes.
        probabilities: float [N, C].
    """
    best = np.argmax(probabilities, axis=1).tolist()
    return [
        ClassAnswer(example.id, labels[number], row[number], dict(zip(labels, row, strict=True)))
        for example, number, row in zip(examples, best, probabilities.tolist(), strict=True)
    ]


def score_answers(examples, scores) -> list[ScoreAnswer]:
    """Answers with `scores`, float [N], of N examples."""
    return [
        ScoreAnswer(example.id, score)
        for example, score in zip(examples, scores.tolist(), strict=True)
    ]


def write_predictions(folder, split, answers) -> Path:
    """Writes answers as lines of JSON, each the fields of one answer.

    Args:
        folder: str or Path. Is made if missing.
        split: str. What was answered; part of the name of the file.
        answers: list of named tuples of plain values, as `Task.answers` returns them.

    Returns:
        Path. `predictions-SPLIT.jsonl`, UTF-8, in order of the answers.

    Raises:
        ValueError: If a number is not finite.
    """
    path = Path(folder) / f"predictions-{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        # In ASCII, so that a line separator or half a surrogate pair in a text does no harm.
        file.writelines(json.dumps(answer._asdict(), allow_nan=False) + "\n" for answer in answers)
    return path


def mean_outputs(results, shape, name="logits"):
    """Averages what several models give.

    Args:
        results: list of dict of str to np.ndarray. One per model.
        shape: tuple of int. What each array should be.
        name: str. Which array.

    Returns:
        np.ndarray float64 [*shape].

    Raises:
        InputError: If there is no model, if an array is of another shape, or if any number in it
            is not finite.
    """
    return _mean(results, shape, name, lambda outputs: outputs)


def mean_probabilities(results, shape, name="logits"):
    """Averages the probabilities of several models: softmax over the last axis in float64.

    Arguments, result and errors as of `mean_outputs`.
    """
    return _mean(results, shape, name, lambda logits: scipy.special.softmax(logits, axis=-1))


def one_line(*texts) -> str:
    """Returns texts in one line without tabs, those of a pair parted by ` ||| `; None is absent."""
    lines = [_WHITE_SPACE.sub(" ", text).strip() for text in texts if text is not None]
    return " ||| ".join(lines)


def _mean(results, shape, name, change):
    if not results:
        raise InputError("There should be the outputs of at least one model. Received: none.")
    return sum(change(_outputs(result[name], shape, name)) for result in results) / len(results)


def _outputs(values, shape, name):
    values = np.asarray(values).astype(np.float64)
    if values.shape != tuple(shape):
        raise InputError(
            f"The `{name}` of a model should be {list(shape)}. Received: {list(values.shape)}. "
            "Models that answer together should be of the same task and the same labels."
        )
    faults = np.count_nonzero(~np.isfinite(values))
    if faults:
        raise InputError(
            f"The model gives no numbers: {faults} of {values.size} `{name}` are not finite. "
            "Its training may have diverged; a lower learning rate may help."
        )
    return values
