"""A user's own table, .tsv, .csv or .jsonl: rows with one or two texts and a label → examples."""

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.labels import check_few
from albert_keras.tasks.tables.cells import Label, class_of, text_of
from albert_keras.tasks.tables.raw_table import kept, read_raw_table
from albert_keras.tasks.tables.rows import (
    Row,
    SkippedRow,
    examples_from,
    is_number,
    remark,
    warn_skipped,
)
from data_pipeline.errors import InputError, Mistake

#: Usual names of the columns of a text and of a label, in lower case.
_TEXT_NAMES = {"text", "texts", "sentence", "content", "review", "comment", "question", "premise"}
_LABEL_NAMES = {"label", "labels", "class", "category", "sentiment", "target", "score", "rating"}


def read_table(
    path: str | PurePath,
    text: str | int,
    pair: str | int | None = None,
    label: str | int | Sequence[str | int] | None = None,
    label_kind: Label = class_of,
    labelled: bool = True,
    encoding: str | None = None,
    skipped: list[SkippedRow] | None = None,
    all_columns: list[dict[str, Any]] | None = None,
    pair_may_be_blank: bool = True,
    id: str | None = None,
    is_official: bool = False,
    skips_short_rows: bool = False,
    may_skip: bool = True,
    may_have_header: bool = True,
    remarks: list[str] | None = None,
) -> list[TextExample]:
    """Reads a table: .tsv, .csv or .jsonl; see `read_raw_table`.

    Args:
        text, pair, label: Columns, by name or number from 0; `label` may be several. If all of them
            are numbers, a .tsv or .csv has no header.
        label_kind: How the cells of `label` are read.
        labelled: Whether labels are read; if not, `label` need not exist.
        encoding: None detects it.
        skipped: Receives the rows that cannot be used. None makes them an error.
        all_columns: Receives the whole row of each example, by name, see `RawTable`.
        pair_may_be_blank: Whether a row may have a blank text in the column `pair`.
        id: Column of the ids; None takes the numbers of the rows.
        is_official: Whether it is a file of a benchmark: a .tsv in UTF-8 whatever its name, whose
            texts are taken as they are.
        skips_short_rows: Whether rows with too few columns are left out, with a warning.
        may_skip: Whether there is an option to skip rows that cannot be used.
        may_have_header: Whether a first row that seems to have the names of the columns cannot be
            used, although all columns are numbers. Not if it has the name of a known class.
        remarks: Receives what is unusual about the file, which is logged in any case.

    Returns:
        `id` is the number of the row in `RawTable.rows`, from 0, unless it has a column. `label`
        is as `label_kind` reads it, or None if no column is given.

    Raises:
        InputError: If the file cannot be read or has another format, if a column is missing, or
            if a row has another number of columns, a blank text or an unusable label; see
            `examples_from`.
    """
    labels = [label] if isinstance(label, str | int) else list(label or ())
    columns = [text, *(column for column in (pair, id) if column is not None)]
    labels = labels if labelled else []
    has_header = not all(map(is_number, [*columns, *labels]))
    table = read_raw_table(path, [*columns, *labels], has_header, encoding, is_official)
    rows = table.rows
    if may_have_header and table.names and not has_header and not is_official:
        rows = with_header_as_problem(rows, table.keys[0], table.keys[-1] if labels else None)
    if not is_official:
        blank = [row for row in rows if row.is_blank]
        rows = [row for row in rows if not row.is_blank]
        said = f"left out {len(blank):,} rows in which all columns are blank, the first in line "
        remark(path, [f"{said}{blank[0].line}"] if blank else [], remarks)
        rows = kept(path, rows, remarks, table.keys) if labels else rows
    if skips_short_rows:
        short = [row for row in rows if len(row.fields) < len(table.names)]
        rows = [row for row in rows if len(row.fields) >= len(table.names)]
        warn_skipped(path, short, len(table.rows))

    def example(number, row):
        first, *cells = (row.fields[key] for key in table.keys)
        second = None if pair is None else cells.pop(0)
        if not is_official:
            text_of(first, text)
            if pair is not None:
                text_of(second, pair, pair_may_be_blank)
        name = str(number) if id is None else cells.pop(0)
        value = label_kind(cells, labels) if labels else None
        if all_columns is not None:
            all_columns.append(row.fields)
        return TextExample(name, first, second, value)

    return examples_from(path, rows, example, skipped, may_skip)


def with_header_as_problem(rows: list[Row], text, label=None) -> list[Row]:
    """Returns rows without names of columns, of which the first has a problem if it has the names.

    It does if its label occurs nowhere else, unlike all others or as a usual name of a column; if
    its text alone is a number; or if its text is a usual name of a column. `text` and `label` are
    the keys of the columns; rows without labels have only the last sign.
    """
    usable = [row.fields for row in rows if row.problem is None]
    if len(usable) < 2 or rows[0].problem is not None:
        return rows
    texts, labels = (
        [] if key is None else [str(fields[key]).strip() for fields in usable]
        for key in (text, label)
    )
    if labels and _label_is_name(texts, labels):
        sign = f"`{labels[0]}` is the label of no other row"
    elif texts[0].lower() in _TEXT_NAMES:
        sign = f"`{texts[0]}` is the usual name of a column of texts"
    else:
        return rows
    problem = f"seems to have the names of the columns: {sign}. Give the columns by name."
    return [rows[0]._replace(problem=problem), *rows[1:]]


def _label_is_name(texts, labels):
    counts = Counter(labels)
    is_only_one = [name for name, count in counts.items() if count == 1] == labels[:1]
    is_usual = counts[labels[0]] == 1 and labels[0].lower() in _LABEL_NAMES
    is_value = re.fullmatch(r"[-+.,\d]+", labels[0])
    is_name = is_usual or is_only_one and len(counts) > 1 and not is_value
    return is_name or texts[0].isdecimal() and not any(map(str.isdecimal, texts[1:]))


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
    check_few(names, len(examples), "rows")
    if all(re.fullmatch(r"-?\d{1,99}", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))
