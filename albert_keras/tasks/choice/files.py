"""RACE: passages of English exams with questions of four options → examples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.json_entries import checked, parsed_line
from albert_keras.tasks.tables.rows import numbered_lines
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json

LEVELS = ("middle", "high")
_LETTERS = "ABCD"
_ALL = "all.txt"


class _Passage(BaseModel):
    article: str
    questions: list[str]
    options: list[Annotated[list[str], Field(min_length=4, max_length=4)]]
    answers: list[Literal["A", "B", "C", "D"] | None] | None = None
    id: Any = None


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
    return read_race_path(root / split, levels)


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
        return [example for level in levels for example in read_race_path(path / level, levels)]
    folder = path.absolute().parent if path.is_file() else path.absolute()
    level = folder.name if folder.name in LEVELS else ""
    return [
        example
        for file in ([path] if path.is_file() else _files(path))
        for line, passage in _passages(file)
        for example in _examples(passage, level, file, line)
    ]


def _files(folder):
    files = [path for path in folder.glob("*.txt") if not path.name.startswith(".")]
    if not files:
        raise InputError(f"`{folder}` must be a file of RACE, or a folder with its .txt files.")
    if folder / _ALL in files:
        return [folder / _ALL]
    return sorted(files, key=lambda path: (len(path.name), path.name))  # 9.txt before 10.txt


def _passages(path):
    """Yields the passages of a file, each with the number of its line."""
    lines = [(number, line) for number, line in numbered_lines(path) if line.strip()]
    if not lines:
        raise InputError(f"`{path}` must contain a JSON object per passage. It is empty.")
    try:  # one passage, in any number of lines
        values = [(1, parse_json("".join(line for _, line in lines), strict=False))]
    except ValueError:
        values = ((number, parsed_line(line, f"`{path}`, line {number}")) for number, line in lines)
    for number, value in values:
        yield number, checked(_Passage, value, f"`{path}`, line {number}")


def _examples(passage, level, path, line):
    count = len(passage.questions)
    answers = [None] * count if passage.answers is None else passage.answers
    if not 0 < count == len(passage.options) == len(answers):
        raise InputError(
            f"`{path}`, line {line} must have as many `options` and `answers` as `questions`, at "
            f"least one. Received: {len(passage.options)}, {len(answers)} and {count}."
        )
    name = passage.id or f"{level}-{path.name}-{line}".removeprefix("-")
    rows = zip(passage.questions, passage.options, answers, strict=True)
    for number, (question, options, answer) in enumerate(rows, start=1):
        label = None if answer is None else _LETTERS.index(answer)
        yield ChoiceExample(
            f"{name}-{number}", passage.article, question, tuple(options), label, level
        )
