"""A user's own table: rows with one or two texts and a label → examples."""

import itertools
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.cells import Label, class_of, text_of
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import SkippedRow, examples_from, is_number
from data_pipeline.errors import InputError, Mistake


def read_table(
    path: str | PurePath,
    text: str | int,
    pair: str | int | None = None,
    label: str | int | Sequence[str | int] | None = None,
    label_kind: Label = class_of,
    labelled: bool = True,
    encoding: str | None = None,
    delimiter: str | None = None,
    skipped: list[SkippedRow] | None = None,
    all_columns: list[dict[str, Any]] | None = None,
) -> list[TextExample]:
    """Reads a table, see `read_raw_table`.

    Args:
        text, pair, label: Columns, by name or number from 0; `label` may be several. If all of them
            are numbers, a .csv, .tsv or .txt has no header.
        label_kind: How the cells of `label` are read.
        labelled: Whether labels are read; if not, `label` need not exist.
        encoding, delimiter: See `read_raw_table`.
        skipped: Receives the rows that cannot be used. None makes them an error.
        all_columns: Receives the whole row of each example, by name, see `RawTable`.

    Returns:
        `id` is the number of the row in `RawTable.rows`, from 0. `label` is as `label_kind` reads
        it, or None if no column is given.

    Raises:
        InputError: If the file cannot be read or has another format, if a column is missing, or
            if a row has another number of columns, a blank text or an unusable label; see
            `examples_from`.
    """
    labels = [label] if isinstance(label, str | int) else list(label or ())
    labels = labels if labelled else []
    columns = [text, *labels] if pair is None else [text, pair, *labels]
    has_header = not all(map(is_number, columns))
    table = read_raw_table(path, columns, has_header, encoding, delimiter)

    def example(number, row):
        first, *cells = (row.fields[key] for key in table.keys)
        text_of(first, text)
        second = None if pair is None else text_of(cells.pop(0), pair, may_be_blank=True)
        value = label_kind(cells, labels) if labels else None
        if all_columns is not None:
            all_columns.append(row.fields)
        return TextExample(str(number), first, second, value)

    return examples_from(path, table.rows, example, skipped)


def label_names(examples: Sequence[TextExample]) -> tuple[str, ...]:
    """Returns the different labels of examples, sorted; whole numbers by value.

    An example may have several labels. InputError for fewer than two.
    """
    labels = (example.label for example in examples)
    sets = (label if isinstance(label, tuple) else (label,) for label in labels)
    names = list(dict.fromkeys(itertools.chain.from_iterable(sets)))
    if len(names) < 2:
        raise InputError(
            f"There must be at least two classes of labels. Received: {names}.", Mistake.ONE_CLASS
        )
    if all(re.fullmatch(r"-?\d{1,99}", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))
