"""Rows of files → examples: the one way for tables, taggings, questions and passages.

The reader of a format yields Rows and makes an example of each. No row is left out in silence:
those that cannot be used are an error that lists the first few, or are skipped, counted and listed.
"""

import functools
import logging
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from albert_keras.report import shortened_value
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_DATA_BYTES, reading_json

_SHOWN = 5  # problems of a file in one message

logger = logging.getLogger(__name__)


class RowError(ValueError):
    """Why a row cannot be used; the text continues "line 7 ..."."""


class Row(NamedTuple):
    """A row of a file."""

    line: int  # number of its first line, or of a question or entry in its file, from 1
    fields: Any  # what an example is made of
    raw: str  # as in the file, with its line breaks
    problem: str | None = None  # why it cannot be used, as in RowError
    file: str | None = None  # if the rows of several files are read together
    entry: int | None = None  # its number in an array, of which a line may have many

    def place(self, unit: str = "line") -> str:
        """Returns where it is in its file, for people; `unit` is what `line` counts."""
        return f"{unit} {self.line}" if self.entry is None else f"entry {self.entry}"


class SkippedRow(NamedTuple):
    """A row that was skipped because it cannot be used."""

    file: str
    line: int
    reason: str
    raw: str  # as in the file, without its last line break


def examples_from(
    path: str | PurePath,
    rows: Iterable[Row],
    make: Callable[[int, Row], Any],
    skipped: list[SkippedRow] | None = None,
    may_skip: bool = True,
    unit: str = "line",
) -> list:
    """Makes an example of each row of a file that can be used.

    Args:
        make: Returns the example of a row, which follows its number from 0, or raises RowError.
        skipped: Receives the rows that cannot be used, with a warning. None makes them an error.
        may_skip: Whether the error names the option that skips such rows.
        unit: What `line` counts.

    Raises:
        InputError: If rows cannot be used, with the first few, or with `skipped` if none can.
    """
    examples, bad, count = [], [], 0
    for count, row in enumerate(rows, start=1):
        try:
            if row.problem is not None:
                raise RowError(row.problem)
            examples.append(make(count - 1, row))
        except RowError as error:
            bad.append(row._replace(problem=str(error)))
    if bad and skipped is None:
        advice = "Correct this, or skip such rows with `skip_bad_rows=True`." if may_skip else ""
        raise InputError(_listing(path, bad, unit, advice), Mistake.BAD_ROWS)
    if not examples:
        why = f" that can be used. {_listing(path, bad, unit)}" if bad else ". It is empty."
        raise InputError(f"`{path}` must contain at least one row{why}")
    for row in bad:
        raw = row.raw.removesuffix("\n").removesuffix("\r")
        skipped.append(SkippedRow(row.file or str(path), row.line, row.problem, raw))
    warn_skipped(path, bad, count, unit)
    return examples


def warn_skipped(path: str | PurePath, bad: list[Row], count: int, unit: str = "line"):
    """Logs how many of the rows of a file were skipped, if any, and the first few."""
    if not bad:
        return
    listing = _listing(path, bad, unit)
    logger.warning("%s: skipped %s of %s rows. %s", path, f"{len(bad):,}", f"{count:,}", listing)


def _listing(path, bad, unit, advice=""):
    """Returns the first few problems of a file, and advice, a sentence."""
    shown = [f"`{row.file or path}` {row.place(unit)} {row.problem}" for row in bad[:_SHOWN]]
    if len(bad) == 1:
        return f"{shown[0]} {advice}".strip()
    some = f", the first {_SHOWN}" if len(bad) > _SHOWN else ""
    lines = [f"  {one.removeprefix(f'`{path}` ')}" for one in shown]
    title = f"{len(bad):,} problems in `{path}`{some}. {advice}".strip()
    return "\n".join([f"{title.removesuffix('.')}:", *lines])


def checked(shape: Any, value: Any) -> Any:
    """Returns a JSON value as a type that pydantic knows, without converting texts or numbers.

    Other keys of objects are ignored.

    Raises:
        RowError: If it has another shape; it names the first broken entry by its keys, counted from
            0 as in `data[0].paragraphs[2].context`, and counts the others.
    """
    try:
        return _adapter(shape).validate_python(value, strict=True)
    except ValidationError as error:
        problems = error.errors()
        count = f" (the first of {len(problems):,} broken entries)" if len(problems) > 1 else ""
        first = problems[0]
        parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in first["loc"])
        name = "".join(parts).removeprefix(".")
        message = first["msg"].partition(" or instance of")[0]  # a class that no user knows
        if first["type"] != "missing":
            message += f". Received: {shortened_value(first['input'])}"
        raise RowError(f"{f'`{name}`: ' if name else ''}{message}.{count}") from None


def read_checked(shape: Any, path: str | Path) -> Any:
    """Reads a JSON file of a shape, see `checked`; InputError if it has another."""
    with reading_json(path, max_bytes=MAX_DATA_BYTES, kind=object, strict=False) as content:
        try:
            return checked(shape, content)
        except RowError as error:
            raise InputError(f"`{path}`: {error}") from None


@functools.cache
def _adapter(shape):
    return TypeAdapter(shape)


def is_number(column: str | int) -> bool:
    """Returns whether a column is given by number, not by name."""
    return str(column).isdecimal()
