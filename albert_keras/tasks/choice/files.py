"""RACE: passages of English exams with questions of four options → examples."""

import logging
from collections.abc import Sequence
from pathlib import Path

from albert_keras.report import shortened_value
from albert_keras.tasks.examples import ChoiceExample
from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DATA_BYTES, parse_json, read_limited

LEVELS = ("middle", "high")
_LETTERS = "ABCD"
_ALL = "all.txt"

logger = logging.getLogger(__name__)


def read_race(
    data_dir: str | Path, split: str, levels: Sequence[str] = LEVELS
) -> list[ChoiceExample]:
    """Reads a split: `RACE/dev/high/all.txt`, or one file per passage as in the original corpus.

    The folder is the corpus itself or the one that contains `RACE`. Examples have four options;
    the id consists of the passage's and the number of the question, as in "high107.txt-1". The
    label is None if the passage has no "answers".

    Raises:
        InputError: If a folder is missing or empty or a file cannot be used; it names the line.
    """
    root = Path(data_dir)
    root = root / "RACE" if (root / "RACE").is_dir() else root
    return _examples_of_levels(root / split, levels)


def read_race_path(path: str | Path, levels: Sequence[str] = LEVELS) -> list[ChoiceExample]:
    """Reads passages from other files; otherwise as `read_race`.

    Args:
        path: A file, with one passage or a passage per line; a folder of such files, whose name is
            the level of the examples if it is one; or one that contains the folders `middle` and
            `high`.
        levels: Which of these two folders to read; nothing else depends on it.
    """
    path = Path(path)
    if any((path / level).is_dir() for level in LEVELS):
        return _examples_of_levels(path, levels)
    folder = path if path.is_dir() else path.absolute().parent
    level = folder.name if folder.name in LEVELS else ""
    return _examples_of_files(_files(path) if path.is_dir() else [path], level)


def _examples_of_levels(folder, levels):
    if not levels:
        raise InputError(
            f"`levels` must contain at least one of {', '.join(LEVELS)}. Received: none."
        )
    return [
        example for level in levels for example in _examples_of_files(_files(folder / level), level)
    ]


def _examples_of_files(files, level):
    return [
        example
        for path in files
        for line, passage in _passages(path)
        for example in _examples(passage, level, path, line)
    ]


def _files(folder):
    if not folder.is_dir():
        raise InputError(f"The folder `{folder}` of RACE does not exist.")
    files = [path for path in folder.glob("*.txt") if not path.name.startswith(".")]
    if not files:
        raise InputError(f"`{folder}` must contain {_ALL} or a .txt file per passage. It is empty.")
    if folder / _ALL not in files:
        return sorted(files, key=lambda path: (len(path.name), path.name))  # 9.txt before 10.txt
    if len(files) > 1:
        logger.warning(
            "Only `%s` is read; %d other .txt files beside it are ignored.",
            folder / _ALL,
            len(files) - 1,
        )
    return [folder / _ALL]


def _passages(path):
    """Yields the number of a line and the JSON object on it."""
    try:
        content = read_limited(path, MAX_DATA_BYTES)
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
    lines = content.split(b"\n")
    if not _is_json(next((line for line in lines if line.strip()), b"")):
        lines = [content]  # one passage in several lines
    if not content.strip():
        raise InputError(f"`{path}` must contain a JSON object per passage. It is empty.")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, parse_json(line.decode("utf-8-sig"), strict=False)
        except ValueError as error:
            number += getattr(error, "lineno", 1) - 1
            raise InputError(
                f"`{path}`, line {number} must be a JSON object in UTF-8. It is broken: "
                f"{getattr(error, 'msg', error)}."
            ) from error


def _is_json(line):
    try:
        parse_json(line.decode("utf-8-sig"), strict=False)
    except ValueError:
        return False
    return True


def _examples(passage, level, path, line):
    location = f"`{path}`, line {line}"
    if not isinstance(passage, dict):
        raise InputError(f"{location} must be a JSON object. Received: {shortened_value(passage)}.")
    for name, kind in (("article", str), ("questions", list), ("options", list)):
        if not isinstance(passage.get(name), kind):
            word = "text" if kind is str else "list"
            received = shortened_value(passage.get(name))
            raise InputError(f'{location} must have a {word} "{name}". Received: {received}.')
    questions, options = passage["questions"], passage["options"]
    answers = passage.get("answers", [None] * len(questions))
    for name, values in (("options", options), ("answers", answers)):
        if not isinstance(values, list) or len(values) != len(questions):
            raise InputError(
                f'{location} must have as many "{name}" as "questions", {len(questions)}. '
                f"Received: {shortened_value(values)}."
            )
    if not questions:
        raise InputError(f'{location} must have at least one of "questions". Received: none.')
    name = passage.get("id", f"{level}-{path.name}-{line}".removeprefix("-"))
    rows = zip(questions, options, answers, strict=True)
    for number, (question, choices, answer) in enumerate(rows, start=1):
        here = f"{location}, question {number}"
        if not isinstance(question, str):
            raise InputError(f"{here} must be a text. Received: {shortened_value(question)}.")
        is_list = isinstance(choices, list) and len(choices) == len(_LETTERS)
        if not is_list or not all(isinstance(choice, str) for choice in choices):
            raise InputError(
                f"{here} must have four texts as options. Received: {shortened_value(choices)}."
            )
        if answer is not None and answer not in tuple(_LETTERS):
            raise InputError(
                f"{here} must have an answer A, B, C or D. Received: {shortened_value(answer)}."
            )
        label = None if answer is None else _LETTERS.index(answer)
        yield ChoiceExample(
            f"{name}-{number}", passage["article"], question, tuple(choices), label, level
        )
