"""Texts to embed: from a list, a table, JSON lines or a plain text file."""

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.cells import text_of
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import examples_from, is_number
from data_pipeline.errors import InputError
from data_pipeline.text import storage

_TABLES = (".tsv", ".csv", ".jsonl")


class Text(NamedTuple):
    """A text with its id: a value of the id column, or the number of its row from 0."""

    id: str
    text: str


def given_texts(texts: Iterable[str]) -> list[Text]:
    """Returns texts that a user gives; InputError for one that is blank or not a text."""
    if isinstance(texts, str):
        raise InputError(f"`texts` must be a list of texts. Received: the text {texts!r:.60}.")
    found = [Text(str(number), text) for number, text in enumerate(texts)]
    for number, row in enumerate(found, start=1):
        if problem := text_problem(row.text):
            raise InputError(f"Text {number} {problem}")
    return found


def read_texts(
    path: str | Path, text_column: str | int | None = None, id_column: str | int | None = None
) -> list[Text]:
    """Reads texts from a file.

    Args:
        path: A table that ends in .tsv, .csv or .jsonl, see `read_raw_table`; or any other file,
            which has a text on each line; blank lines are skipped, and count as rows.
        text_column: Column of the text, by name or number. A table must have it.
        id_column: Column of the id. None takes the number of the row, from 0.

    Raises:
        InputError: If the file cannot be read, or has a row that cannot be used.
    """
    if PurePath(path).suffix.lower() in _TABLES:
        if text_column is None:
            raise InputError(
                f"The column of the text in `{path}` must be given. Received: none. Name it as "
                "`text_column`."
            )
        return _rows(path, text_column, id_column)
    for name, column in (("text_column", text_column), ("id_column", id_column)):
        if column is not None:
            storage.open_to_read(path).close()  # an archive is named by its kind
            raise InputError(
                f"`{name}` requires a table that ends in .tsv, .csv or .jsonl. Received: `{path}`, "
                "which is read as a text on each line."
            )
    rows = [row for row in line_rows(path) if row.fields.strip()]
    return examples_from(
        path, rows, lambda _, row: Text(str(row.line - 1), row.fields), may_skip=False
    )


def _rows(path, text_column, id_column):
    columns = [text_column] if id_column is None else [text_column, id_column]
    table = read_raw_table(path, columns, has_header=not all(map(is_number, columns)))

    def made(number, row):
        text, *ids = (row.fields[key] for key in table.keys)
        return Text(str(ids[0]) if ids else str(number), text_of(text, text_column))

    return examples_from(path, table.rows, made, may_skip=False)
