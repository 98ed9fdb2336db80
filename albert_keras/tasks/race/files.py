"""RACE: passages of English exams with questions of four options → examples, and accuracy."""

import json
import logging
from pathlib import Path

import numpy as np

from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.race.choice_features import choice_features as choice_features
from albert_keras.tasks.race.choice_features import choice_text as choice_text
from data_pipeline.errors import InputError

LEVELS = ("middle", "high")
SPLITS = ("train", "dev", "test")

_LETTERS = "ABCD"
_ALL = "all.txt"

logger = logging.getLogger(__name__)


def read_race(data_dir, split, levels=LEVELS) -> list[ChoiceExample]:
    """Reads a split: `RACE/dev/high/all.txt`, or one file per passage as in the original corpus.

    Args:
        data_dir: path. The folder of the corpus or the one that `RACE` lies in.
        split: str. "train", "dev" or "test".
        levels: sequence of str. "middle", "high" or both, in this order.

    Returns:
        list of ChoiceExample. Four options each; the id is the passage's and the number of the
        question, as in "high107.txt-1". The label is None where the passage has no "answers".

    Raises:
        InputError: If a folder is missing or empty or a file cannot be used; it names the line.
    """
    if split not in SPLITS:
        raise InputError(f"`split` should be one of {', '.join(SPLITS)}. Received: {split}.")
    root = Path(data_dir)
    root = root / "RACE" if (root / "RACE").is_dir() else root
    return _examples_of_levels(root / split, levels)


def read_race_path(path, levels=LEVELS) -> list[ChoiceExample]:
    """Reads passages that lie elsewhere, or in part.

    Args:
        path: path. A file, with one passage or a passage per line; a folder of such files; or one
            that `middle` and `high` lie in.
        levels: sequence of str. Which of these two folders to read; nothing else depends on it.

    Returns:
        list of ChoiceExample. As `read_race`; the level is the name of the folder the files are
        in if that is a level, else "".

    Raises:
        InputError: As `read_race`.
    """
    path = Path(path)
    if any((path / level).is_dir() for level in LEVELS):
        return _examples_of_levels(path, levels)
    folder = path if path.is_dir() else path.absolute().parent
    level = folder.name if folder.name in LEVELS else ""
    return _examples_of_files(_files(path) if path.is_dir() else [path], level)


def _examples_of_levels(folder, levels):
    if not levels or not set(levels) <= set(LEVELS):
        raise InputError(f"`levels` should be some of {', '.join(LEVELS)}. Received: {levels}.")
    examples = []
    for level in levels:
        examples += _examples_of_files(_files(folder / level), level)
    return examples


def _examples_of_files(files, level):
    examples = []
    for path in files:
        for line, passage in _passages(path):
            examples += _examples(passage, level, path, line)
    return examples


def _files(folder):
    if not folder.is_dir():
        raise InputError(f"RACE should have a folder `{folder}`. It is missing.")
    files = [path for path in folder.glob("*.txt") if not path.name.startswith(".")]
    if not files:
        raise InputError(f"`{folder}` should hold {_ALL} or a .txt file per passage. It has none.")
    if folder / _ALL not in files:
        return sorted(files, key=lambda path: (len(path.name), path.name))  # 9.txt before 10.txt
    if len(files) > 1:
        logger.warning(
            "`%s` is read and %d other .txt files beside it are not.", folder / _ALL, len(files) - 1
        )
    return [folder / _ALL]


def _passages(path):
    """Yields the number of a line and the JSON object on it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
    lines = content.split(b"\n")
    if not _is_json(next((line for line in lines if line.strip()), b"")):
        lines = [content]  # one passage, spread over lines
    found = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = True
        try:
            yield number, json.loads(line.decode("utf-8-sig"), strict=False)
        except (ValueError, RecursionError) as error:
            number += getattr(error, "lineno", 1) - 1
            raise InputError(
                f"`{path}`, line {number} should be a JSON object in UTF-8. It is broken: "
                f"{getattr(error, 'msg', error)}."
            ) from error
    if not found:
        raise InputError(f"`{path}` should hold a JSON object per passage. It is empty.")


def _is_json(line):
    try:
        json.loads(line.decode("utf-8-sig"), strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _examples(passage, level, path, line):
    place = f"`{path}`, line {line}"
    if not isinstance(passage, dict):
        raise InputError(f"{place} should be a JSON object. Received: {_short(passage)}.")
    for name, kind in (("article", str), ("questions", list), ("options", list)):
        if not isinstance(passage.get(name), kind):
            word = "text" if kind is str else "list"
            received = _short(passage.get(name))
            raise InputError(f'{place} should have a {word} "{name}". Received: {received}.')
    questions, options = passage["questions"], passage["options"]
    answers = passage.get("answers", [None] * len(questions))
    for name, values in (("options", options), ("answers", answers)):
        if not isinstance(values, list) or len(values) != len(questions):
            raise InputError(
                f'{place} should have as many "{name}" as "questions", {len(questions)}. '
                f"Received: {_short(values)}."
            )
    if not questions:
        raise InputError(f'{place} should have at least one of "questions". Received: none.')
    name = passage.get("id", f"{level}-{path.name}-{line}".removeprefix("-"))
    for number, (question, choices, answer) in enumerate(
        zip(questions, options, answers, strict=True), start=1
    ):
        here = f"{place}, question {number}"
        if not isinstance(question, str):
            raise InputError(f"{here} should be a text. Received: {_short(question)}.")
        if (
            not isinstance(choices, list)
            or len(choices) != len(_LETTERS)
            or not all(isinstance(choice, str) for choice in choices)
        ):
            raise InputError(
                f"{here} should have four texts as options. Received: {_short(choices)}."
            )
        if answer is not None and answer not in tuple(_LETTERS):
            raise InputError(
                f"{here} should have an answer A, B, C or D. Received: {_short(answer)}."
            )
        label = None if answer is None else _LETTERS.index(answer)
        yield ChoiceExample(
            f"{name}-{number}", passage["article"], question, tuple(choices), label, level
        )


def _short(value):
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."


def choice_accuracy(examples, predictions) -> dict[str, float]:
    """Returns the share of right choices, of all questions and by level.

    Args:
        examples: list of ChoiceExample. N of them, with labels.
        predictions: int [N]. The option chosen.

    Returns:
        dict. `accuracy`, and `accuracy_middle` and `accuracy_high` where there are such questions.

    Raises:
        InputError: If there is no question, one has no label, or the numbers differ.
    """
    if not examples or len(examples) != len(predictions):
        raise InputError(
            "Accuracy needs one prediction for each of at least one question. "
            f"Received: {len(predictions)} for {len(examples)}."
        )
    for example in examples:
        if example.label is None:
            raise InputError(f"Accuracy needs the right answers. Question {example.id} has none.")
    right = np.array([example.label for example in examples]) == np.asarray(predictions)
    levels = np.array([example.level for example in examples])
    scores = {"accuracy": float(right.mean())}
    for level in LEVELS:
        if (levels == level).any():
            scores[f"accuracy_{level}"] = float(right[levels == level].mean())
    return scores
