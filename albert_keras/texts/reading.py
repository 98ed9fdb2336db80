"""Texts to embed, one after the other: from a list, a table, JSON lines or a plain text file."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import NamedTuple

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import RowError, examples_from, is_number
from data_pipeline.errors import InputError
from data_pipeline.limits import bounded_lines
from data_pipeline.text import storage

_TABLES = (".tsv", ".csv", ".jsonl")


class Text(NamedTuple):
    """A text with its id: a value of the id column, or the number of its row from 0."""

    id: str
    text: str


def given_texts(texts: Iterable[str]) -> Iterator[Text]:
    """Returns texts that a user gives; InputError for one that is blank or not a text."""
    if isinstance(texts, str):
        raise InputError(f"`texts` must be a list of texts. Received: the text {texts!r:.60}.")
    return itertools.starmap(_given_text, enumerate(texts))


def _given_text(number, text):
    if problem := text_problem(text):
        raise InputError(f"Text {number + 1} {problem}")
    return Text(str(number), text)


def read_texts(
    path: str | Path, text_column: str | int | None = None, id_column: str | int | None = None
) -> Iterator[Text]:
    """Reads texts from a file; a table is in memory as a whole, a text file is not.

    Args:
        path: A table that ends in .tsv, .csv or .jsonl, see `read_raw_table`; or any other file,
            which has a text on each line; blank lines are skipped, and count as rows.
        text_column: Column of the text, by name or number. A table must have it.
        id_column: Column of the id. None takes the number of the row, from 0.

    Yields:
        Text.

    Raises:
        InputError: If the file cannot be read, or has a row that cannot be used.
    """
    is_table = PurePath(path).suffix.lower() in _TABLES
    if is_table and text_column is None:
        raise InputError(
            f"The column of the text in `{path}` must be given. Received: none. Name it as "
            "`text_column`."
        )
    if is_table:
        return _rows(path, text_column, id_column)
    for name, column in (("text_column", text_column), ("id_column", id_column)):
        if column is not None:
            raise InputError(
                f"`{name}` requires a table that ends in .tsv, .csv or .jsonl. Received: `{path}`, "
                "which is read as a text on each line."
            )
    return _lines(path)


def _rows(path, text_column, id_column):
    columns = [text_column] if id_column is None else [text_column, id_column]
    has_header = not all(is_number(column) for column in columns)
    table = read_raw_table(path, columns, has_header)

    def text_of(number, row):
        text, *ids = (row.fields[key] for key in table.keys)
        if problem := text_problem(text):
            raise RowError(problem)
        return Text(str(ids[0]) if ids else str(number), text)

    return iter(examples_from(path, table.rows, text_of, may_skip=False))


def _lines(path):
    with storage.open_to_read(path) as file:
        numbers = itertools.count()
        for number, line in enumerate(bounded_lines(file, f"`{path}`")):
            try:
                decoded = line.decode("utf-8" if number else "utf-8-sig")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"`{path}` line {number + 1} must be UTF-8. "
                    f"Its byte {error.start} (0x{line[error.start]:02x}) is not."
                ) from None
            # A carriage return alone ends a line, too.
            for text in re.split(r"\r(?!$)", decoded.removesuffix("\n").removesuffix("\r")):
                name = str(next(numbers))
                if text.strip():
                    yield Text(name, text)


def in_chunks(texts: Iterable[Text], size: int) -> Iterator[list[Text]]:
    """Yields lists of at most `size` texts, in order."""
    texts = iter(texts)
    while chunk := list(itertools.islice(texts, size)):
        yield chunk
