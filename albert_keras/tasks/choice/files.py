"""RACE: passages of English exams with questions of four options → examples."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import object_row
from albert_keras.tasks.tables.rows import Row, RowError, SkippedRow, checked, examples_from
from data_pipeline.errors import InputError

LEVELS = ("middle", "high")
_LETTERS = "ABCD"


class _Passage(BaseModel):
    article: str
    questions: list[Any]
    options: list[Any]
    answers: list[Any] | None = None
    id: Any = None


class _Question(BaseModel):
    question: str
    options: Annotated[list[str], Field(min_length=4, max_length=4)]
    answer: Literal["A", "B", "C", "D"] | None


def read_race(
    path: str | Path,
    levels: Sequence[str] = LEVELS,
    labelled: bool = False,
    skipped: list[SkippedRow] | None = None,
    encoding: str | None = None,
) -> list[ChoiceExample]:
    """Reads passages with questions, as in the folders and files of RACE.

    Args:
        path: A file with a passage in each line, such as `RACE/dev/high/107.txt`; a folder of such
            files, whose name is the level of the examples if it is one; or one that contains the
            folders `middle` and `high`.
        levels: Which of these two folders to read; nothing else depends on it.
        labelled: Whether each question must have an answer.
        skipped: Receives the questions that cannot be used. None makes them an error.
        encoding: See `read_raw_table`.

    Returns:
        Examples of four options; the id consists of the passage's and the number of the question,
        as in "high107.txt-1". The label is None if the question has no answer.

    Raises:
        InputError: If a folder is missing or empty, or questions cannot be used.
    """

    def example(number, row):
        passage, level, fields = row.fields
        question = checked(_Question, fields)
        if labelled and question.answer is None:
            raise RowError("must have an answer, A to D. Received: none.")
        label = None if question.answer is None else _LETTERS.index(question.answer)
        options = tuple(question.options)
        return ChoiceExample(row.raw, passage.article, question.question, options, label, level)

    return examples_from(path, _questions(Path(path), levels, encoding), example, skipped)


def _questions(path, levels, encoding) -> Iterator[Row]:
    """Yields each question of a file or folder as a Row of its passage, its level and itself."""
    for file, level in _files(path, levels):
        lines = [row for row in line_rows(file, encoding) if row.fields.strip()]
        for row in map(object_row, lines):
            row = row._replace(file=str(file))
            try:
                passage, questions = _passage_of(row)
            except RowError as error:
                yield row._replace(problem=str(error))
                continue
            name = passage.id or f"{level}-{file.name}-{row.line}".removeprefix("-")
            for number, fields in enumerate(questions, start=1):
                yield row._replace(fields=(passage, level, fields), raw=f"{name}-{number}")


def _files(path, levels):
    """Yields the files of a path, and the level of their questions."""
    if any((path / level).is_dir() for level in LEVELS):
        for level in levels:
            yield from _files(path / level, levels)
        return
    folder = path.absolute().parent if path.is_file() else path.absolute()
    files = [path] if path.is_file() else [*path.glob("*.txt")]
    if not files:
        raise InputError(f"`{path}` must be a file of RACE, or a folder with its .txt files.")
    for file in sorted(files, key=lambda file: (len(file.name), file.name)):  # 9.txt before 10.txt
        yield file, folder.name if folder.name in LEVELS else ""


def _passage_of(row):
    """Returns the passage of a row and the fields of its questions, or raises RowError."""
    if row.problem is not None:
        raise RowError(row.problem)
    passage = checked(_Passage, row.fields)
    count = len(passage.questions)
    answers = [None] * count if passage.answers is None else passage.answers
    if not 0 < count == len(passage.options) == len(answers):
        raise RowError(
            "must have as many `options` and `answers` as `questions`, at least one. "
            f"Received: {len(passage.options)}, {len(answers)} and {count}."
        )
    parts = zip(passage.questions, passage.options, answers, strict=True)
    return passage, [dict(zip(_Question.model_fields, one, strict=True)) for one in parts]
