"""Texts to embed: from a list, a table, JSON lines or a plain text file."""

from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import NamedTuple

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.rows import examples_from
from data_pipeline.errors import InputError

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
    path: str | Path, text_column: str | int | None = None, id_column: str | None = None
) -> list[Text]:
    """Reads texts from a file.

    Args:
        path: A table that ends in .tsv, .csv or .jsonl, see `read_table`; or any other file, which
            has a text on each line; blank lines are skipped, and count as rows.
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
        examples = read_table(path, text_column, id=id_column, may_skip=False)
        return [Text(str(example.id), example.first) for example in examples]
    for name, column in (("text_column", text_column), ("id_column", id_column)):
        if column is not None:
            raise InputError(
                f"`{name}` requires a table that ends in .tsv, .csv or .jsonl. Received: `{path}`, "
                "which is read as a text on each line."
            )
    rows = [row for row in line_rows(path) if row.fields.strip()]
    return examples_from(
        path, rows, lambda _, row: Text(str(row.line - 1), row.fields), may_skip=False
    )
