"""Reads a .tsv, .csv or .jsonl as it is: a file → its header and all of its rows, as written."""

import csv
import io
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from albert_keras.tasks.tables.dialect import (
    DETECTED,
    USUAL_DELIMITERS,
    Dialect,
    broken_byte,
    decoded,
    description,
    detect_delimiter,
    has_quotes,
    separator_line,
)
from albert_keras.tasks.tables.rows import is_number, without_last_blanks
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_LINE_BYTES, parse_json
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

logger = logging.getLogger(__name__)

_BLOCK = 1 << 20
# The text of a row may be longer than the 131,072 characters that Python allows by default.
csv.field_size_limit(2**31 - 1)


class Row(NamedTuple):
    """A row of a table."""

    line: int  # number of its first line, from 1
    fields: list[str] | dict[str, Any]  # in a .jsonl the object
    raw: str  # as in the file, with its line breaks
    problem: str | None = None  # why it cannot be used; continues "line 7 ..."


class RawTable(NamedTuple):
    """A table with all of its columns."""

    path: str | PurePath
    header: list[str] | None  # names of the columns; None if the file has none, as a .jsonl
    rows: list[Row]  # below the header; rows that cannot be used have a `problem`
    width: int  # number of columns; 0 for a .jsonl
    dialect: Dialect

    def values(self, row: Row, columns: Sequence[str | int]) -> list:
        """Returns the values of some columns, by name or number, in a row without a problem."""
        return self.reader(columns)(row)

    def reader(self, columns: Sequence[str | int]) -> Callable[[Row], list]:
        """Returns `values` for these columns as a function of a row."""
        keys = list(map(str, columns)) if self.width == 0 else self.numbers(columns)
        return lambda row: [row.fields[key] for key in keys]

    def columns(self, row: Row) -> dict[str, Any]:
        """Returns all values of a row without a problem by the name of their column.

        Columns without a name are called `column_1` and so on, counted from 1; of columns with the
        same name all but the first get a number, such as `text_2`.
        """
        if isinstance(row.fields, dict):
            return dict(row.fields)
        names = self.header or [""] * self.width
        columns: dict[str, Any] = {}
        for number, (name, value) in enumerate(zip(names, row.fields, strict=True), start=1):
            name = name.strip() or f"column_{number}"
            columns[name if name not in columns else f"{name}_{number}"] = value
        return columns

    def numbers(self, columns: Sequence[str | int]) -> list[int]:
        """Returns the number of each column, from 0, in a .tsv or .csv that has all of them."""
        header = self.header or []
        has_numbers = not _is_default_header(header)
        return [
            int(column) if has_numbers and is_number(column) else header.index(str(column))
            for column in columns
        ]


def read_raw_table(
    path: str | PurePath,
    columns: Sequence[str | int] = (),
    has_header: bool = True,
    dialect: Dialect = DETECTED,
) -> RawTable:
    """Reads all columns and rows of a table that ends in .tsv, .csv or .jsonl.

    A .csv may quote its fields, which may then contain delimiters and line breaks. In a .tsv with
    tabs nothing is quoted: a row is a line. A .jsonl has an object per line. A byte order mark,
    CRLF and blank lines at the end make no difference.

    Args:
        columns: Columns that must exist, by name, or by number from 0; in a .jsonl always names.
        has_header: Whether the first row of a .tsv or .csv names the columns.
        dialect: What is None is detected; a detected value that is not the usual one is logged.

    Returns:
        RawTable. A row that is broken, has another number of columns than the first, or lacks one
        of `columns` has a `problem`.

    Raises:
        InputError: If the file cannot be read or decoded, is empty, has an endless line, or lacks a
            column.
    """
    ending = PurePath(path).suffix.lower()
    if ending not in USUAL_DELIMITERS:
        raise InputError(f"`{path}` must end in .tsv, .csv or .jsonl.", Mistake.FILE_ENDING)
    with storage.open_to_read(path) as file:
        text, encoding = decoded(path, _read_bounded(path, file), dialect.encoding)
    lines = list(io.StringIO(text, newline="\n"))  # only LF ends a line
    delimiter, first = None, 1
    if ending != ".jsonl":
        named = separator_line(lines, ending)
        if named is not None:
            lines, first = lines[1:], 2
        delimiter = dialect.delimiter or named
        delimiter = delimiter or detect_delimiter(lines, ending, columns, has_header)
    found = Dialect(encoding, delimiter)
    detected = description(found, dialect, ending, text)
    if detected:
        logger.info("%s: %s.", path, detected)
    if delimiter is None:
        rows = _objects(lines, [str(column) for column in columns], encoding)
    elif has_quotes(ending, delimiter):
        rows = _quoted_rows(lines, delimiter, first)
    else:
        rows = _plain_rows(lines, delimiter)
    rows = list(without_last_blanks(rows))
    if not rows:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    if delimiter is None:
        return RawTable(path, None, rows, 0, found)
    top = rows[0]
    if not has_header and _is_default_header(top.fields):
        has_header = True
        logger.info("%s: the first row, %s, is the header.", path, ", ".join(top.fields))
    if has_header and (problem := top.problem or broken_byte(top.raw, encoding)):
        raise InputError(f"`{path}` line {top.line} {problem}")
    header = top.fields if has_header else None
    _check_columns(path, top.fields, columns, has_header)
    width = len(top.fields)
    rows = [_checked(row, width, encoding) for row in rows[has_header:]]
    return RawTable(path, header, rows, width, found)


def _read_bounded(path, file) -> bytes:
    """Reads a whole file; InputError as soon as a line has more than `MAX_LINE_BYTES`."""
    blocks, number, length = [], 1, 0
    while block := file.read(_BLOCK):  # smaller than the limit: only its first line can exceed it
        end = block.find(b"\n")
        length += len(block) if end < 0 else end
        if length > MAX_LINE_BYTES:
            raise InputError(
                f"`{path}` line {number} must have at most {MAX_LINE_BYTES:,} bytes. Received: "
                "more. Shorten its fields, or check that the file is a table with line breaks."
            )
        if end >= 0:
            number += block.count(b"\n")
            length = len(block) - block.rindex(b"\n") - 1
        blocks.append(block)
    return b"".join(blocks)


def _plain_rows(lines, delimiter) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        fields = line.removesuffix("\n").removesuffix("\r").split(delimiter)
        yield Row(number, fields, line)


def _quoted_rows(lines, delimiter, first_line) -> Iterator[Row]:
    """Yields the rows of a .csv; after a broken one, reading resumes at its second line."""
    begin = 0
    while begin < len(lines):
        rest = (lines[number] for number in range(begin, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True)
        start = begin
        try:
            for fields in reader:
                end = begin + reader.line_num
                yield Row(first_line + start, fields, "".join(lines[start:end]))
                start = end
        except csv.Error as error:
            problem = f"must be CSV: {error}."
            yield Row(first_line + start, [lines[start]], lines[start], problem)
        begin = start + 1


def _objects(lines, columns, encoding) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        try:
            record = parse_json(text)
        except ValueError:
            record = None
        problem, fields = broken_byte(line, encoding), record
        if not isinstance(record, dict):
            # Without text, as a blank line of the other formats.
            fields = [text]
            problem = problem or f"must be a JSON object. Received: {text[:40] or 'nothing'}."
        elif missing := [name for name in columns if name not in record]:
            problem = problem or f"has no `{missing[0]}`{did_you_mean(missing[0], record)}"
        yield Row(number, fields, line, problem)


def _checked(row, width, encoding):
    """Returns a row with its problem, if it has one."""
    problem = broken_byte(row.raw, encoding) or row.problem
    if problem is None and len(row.fields) != width:
        rule = f"must have {width} columns, like the first row"
        problem = f"{rule}. It has {len(row.fields)}."
    return row if problem is None else row._replace(problem=problem)


def _is_default_header(fields):
    """Returns whether a row has the names 0, 1, 2, ... that a data frame gives its columns."""
    names = fields[1:] if fields[:1] == [""] else fields  # the first column is the index
    return len(names) > 1 and names == [str(number) for number in range(len(names))]


def _check_columns(path, top, columns, has_header):
    """Raises InputError with all columns that are missing."""
    faults = []
    for column in columns:
        if is_number(column) and not _is_default_header(top):
            if int(column) >= len(top):
                faults.append(f"has no column {column}: it has {len(top)}, counted from 0.")
        elif not has_header:
            faults.append(f"has no header, so `{column}` must be the number of a column.")
        elif (name := str(column)) not in top:
            faults.append(f"has no column `{name}`{did_you_mean(name, top)}")
        elif top.count(name) > 1:
            faults.append(f"must have one column `{name}`. It has {top.count(name)}.")
    if faults:
        message = "\n".join(f"`{path}` {fault}" for fault in faults)
        raise InputError(message, Mistake.NO_COLUMN)
