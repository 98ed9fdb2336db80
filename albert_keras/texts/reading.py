"""Texts to embed: from a list, a table, JSON lines or a plain text file."""

from collections.abc import Iterable
from pathlib import Path, PurePath

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.cells import text_of
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import examples_from, is_number
from data_pipeline.errors import InputError
from data_pipeline.text import storage

_TABLES = (".tsv", ".csv", ".jsonl")


def given_texts(texts: Iterable[str]) -> list[str]:
    """Returns texts that a user gives; InputError for one that is blank or not a text."""
    if isinstance(texts, str):
        raise InputError(f"`texts` must be a list of texts. Received: the text {texts!r:.60}.")
    found = list(texts)
    for number, text in enumerate(found, start=1):
        if problem := text_problem(text):
            raise InputError(f"Text {number} {problem}")
    return found


def read_texts(path: str | Path, text_column: str | int | None = None) -> list[str]:
    """Reads texts from a file.

    Args:
        path: A table that ends in .tsv, .csv or .jsonl, see `read_raw_table`; or any other file,
            which has a text on each line; blank lines are skipped.
        text_column: Column of the text, by name or number. A table must have it.

    Raises:
        InputError: If the file cannot be read, or has a row that cannot be used.
    """
    if PurePath(path).suffix.lower() not in _TABLES:
        if text_column is not None:
            storage.open_to_read(path).close()  # an archive is named by its kind
            raise InputError(
                "`text_column` requires a table that ends in .tsv, .csv or .jsonl. Received: "
                f"`{path}`, which is read as a text on each line."
            )
        rows = [row for row in line_rows(path) if row.fields.strip()]
        return examples_from(path, rows, lambda _, row: row.fields, may_skip=False)
    if text_column is None:
        raise InputError(
            f"The column of the text in `{path}` must be given. Received: none. Name it as "
            "`text_column`."
        )
    table = read_raw_table(path, [text_column], has_header=not is_number(text_column))
    [key] = table.keys
    return examples_from(
        path, table.rows, lambda _, row: text_of(row.fields[key], text_column), may_skip=False
    )
