"""A user's own table, .tsv, .csv or .jsonl: rows with one or two texts and a label → examples.

No row is skipped silently: one that cannot be used is an error with file, line and reason, or, if
rows may be skipped, is counted and listed.
"""

import itertools
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.cells import CellError, Label, class_of, text_of
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import SkippedRow, is_number, skip_or_raise
from data_pipeline.errors import InputError, Mistake

#: With more labels than this, they must be fewer than half of the rows.
_FEW_LABELS = 20


def read_table(
    path: str | PurePath,
    text: str | int,
    pair: str | int | None = None,
    label: str | int | Sequence[str | int] | None = None,
    label_kind: Label = class_of,
    has_header: bool | None = None,
    encoding: str | None = None,
    skipped: list[SkippedRow] | None = None,
    all_columns: list[dict[str, Any]] | None = None,
    pair_may_be_blank: bool = True,
    id: str | None = None,
    is_official: bool = False,
    short: list[int] | None = None,
) -> list[TextExample]:
    """Reads a table: .tsv, .csv or .jsonl; see `read_raw_table`.

    Args:
        text, pair, label: Columns, by name or number from 0; `label` None if labels are to be
            predicted, or several columns.
        label_kind: How the cells of `label` are read.
        has_header: Whether the first row of a .tsv or .csv names the columns; None if it does so
            as soon as any column is given by name.
        encoding: None detects it.
        skipped: Receives the rows that cannot be used. None makes them an error.
        all_columns: Receives the whole row of each example, see `RawTable.columns`.
        pair_may_be_blank: Whether a row may have a blank text in the column `pair`.
        id: Column of the ids; None takes the numbers of the rows.
        is_official: Whether it is a file of a benchmark: a .tsv in UTF-8 whatever its name, whose
            texts are taken as they are.
        short: Receives the lines of rows with too few columns, which then are left out.

    Returns:
        `id` is the number of the row in `RawTable.rows`, from 0, unless it has a column. `label`
        is as `label_kind` reads it, or None if no column is given.

    Raises:
        InputError: If the file cannot be read or has another format, if a column is missing, or
            if a row has another number of columns, a blank text or an unusable label; the first
            few of these are listed. With `skipped`, only if nearly all rows are such.
    """
    labels = label_columns(label)
    columns = [text, *(column for column in (pair, id) if column is not None), *labels]
    if has_header is None:
        has_header = not all(is_number(column) for column in columns)
    table = read_raw_table(path, columns, has_header, encoding, is_official)
    examples, bad, keys = [], [], table.keys(columns)
    read_text = _as_it_is if is_official else text_of
    for number, row in enumerate(table.rows):
        if short is not None and len(row.fields) < len(table.names):
            short.append(row.line)
            continue
        try:
            if row.problem is not None:
                raise CellError(row.problem)
            first, *cells = (row.fields[key] for key in keys)
            first = read_text(first, text)
            second = None if pair is None else read_text(cells.pop(0), pair, pair_may_be_blank)
            name = str(number) if id is None else cells.pop(0)
            value = label_kind(cells, labels) if labels else None
            examples.append(TextExample(name, first, second, value))
            if all_columns is not None:
                all_columns.append(table.columns(row))
        except CellError as error:
            raw = row.raw.removesuffix("\n").removesuffix("\r")
            bad.append(SkippedRow(str(path), row.line, str(error), raw))
    skip_or_raise(path, bad, len(table.rows), skipped, may_skip=not is_official)
    if not examples:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    return examples


def _as_it_is(value, column, may_be_blank=True):
    return value


def label_columns(label: str | int | Sequence[str | int] | None) -> list[str | int]:
    """Returns the columns of a label as a list, empty if None."""
    if label is None:
        return []
    return [label] if isinstance(label, str | int) else list(label)


def label_names(examples: Sequence[TextExample]) -> tuple[str, ...]:
    """Returns the different labels of examples, sorted; whole numbers by value.

    An example may have several labels. InputError for fewer than two, or about as many as examples.
    """
    labels = (example.label for example in examples)
    sets = (label if isinstance(label, tuple) else (label,) for label in labels)
    names = list(dict.fromkeys(itertools.chain.from_iterable(sets)))
    if len(names) < 2:
        raise InputError(
            f"There must be at least two classes of labels. Received: {names}.", Mistake.ONE_CLASS
        )
    if len(names) > _FEW_LABELS and 2 * len(names) > len(examples):
        raise InputError(
            f"The labels must be names of classes. Received: {len(names)} different ones in "
            f"{len(examples)} rows, such as {names[0][:40]!r}. Is this the column of the label? "
            "If labels are numbers, use --task regression."
        )
    if all(re.fullmatch(r"-?\d+", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))
