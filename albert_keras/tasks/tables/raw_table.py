"""Reads a table as it is: a file → its header and all of its rows, as written."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from albert_keras.tasks.tables.lines import USUAL_ENCODING, line_rows
from albert_keras.tasks.tables.rows import Row, is_number
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import parse_json, unique
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

JSON_ENDINGS = (".jsonl", ".json")
#: Delimiters of a .csv. The first one is that of a file whose columns are numbers.
_DELIMITERS = (",", ";", "\t", "|")

# The text of a row may be longer than the 131,072 characters that Python allows by default.
csv.field_size_limit(2**31 - 1)


class RawTable(NamedTuple):
    """A table with all of its columns. Without a header, their names are numbers from 0."""

    names: list[str]  # of the columns; none in a .jsonl or .json
    keys: list[str]  # the names of the columns that were asked for
    rows: list[Row]  # below the header; `fields` is a dict by names unless there is a `problem`


def read_raw_table(
    path: str | PurePath,
    columns: Sequence[str | int] = (),
    has_header: bool = True,
    encoding: str | None = None,
    delimiter: str | None = None,
    is_official: bool = False,
) -> RawTable:
    """Reads all columns and rows of a table.

    A .csv is one of RFC 4180. In a .tsv or .txt a row is a line, tabs separate its fields, and
    nothing is quoted. A .jsonl has an object in each line, a .json an array of objects. Blank lines
    at the end make no difference.

    Args:
        path: The file.
        columns: Columns that must exist, by name, or by number from 0; in a .jsonl always names.
        has_header: Whether the first row of a .csv, .tsv or .txt names the columns.
        encoding: See `line_rows`.
        delimiter: Of a .csv. None is the one with which the header has all columns that are named,
            see `_delimiter_of`.
        is_official: Whether it is a .tsv in UTF-8 whatever its name, as the files of benchmarks.

    Returns:
        RawTable. A row that is broken, has another number of columns than the first, or lacks one
        of `columns` has a `problem`.

    Raises:
        InputError: If the file cannot be read or decoded, is empty, is no CSV, or lacks a column,
            or if two columns have the same name.
    """
    ending = ".tsv" if is_official else PurePath(path).suffix.lower()
    if ending in JSON_ENDINGS:
        names = list(map(str, columns))
        return RawTable([], names, list(object_rows(path, encoding, names)))
    if ending not in (".csv", ".tsv", ".txt"):
        storage.open_to_read(path).close()  # an archive is named by its kind
        raise InputError(
            f"`{path}` must end in .tsv, .txt, .csv, .jsonl or .json.", Mistake.FILE_ENDING
        )
    lines = line_rows(path, USUAL_ENCODING if is_official else encoding)
    if ending == ".csv":
        rows = list(_csv_rows(path, lines, delimiter or _delimiter_of(lines, columns)))
    else:
        rows = list(_tab_rows(lines))
    while rows and not rows[-1].raw.strip("\r\n"):
        rows.pop()
    if not rows:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    top = rows[0]
    if has_header and top.problem:
        raise InputError(f"`{path}` line {top.line} {top.problem}")
    header = top.fields if has_header else list(map(str, range(len(top.fields))))
    keys = _keys(path, header, columns)
    return RawTable(header, keys, [_with_names(row, header) for row in rows[has_header:]])


def _delimiter_of(lines: Sequence[Row], columns: Sequence[str | int]) -> str:
    """Returns the delimiter with which the header of a .csv has all columns that are named.

    It is the first one of `_DELIMITERS` if there is none, or no column has a name.
    """
    names = {str(column) for column in columns if not is_number(column)}
    for delimiter in _DELIMITERS:
        try:
            header = next(csv.reader((line.raw for line in lines), delimiter=delimiter), [])
        except csv.Error:
            continue
        if names <= set(header):
            return delimiter
    return _DELIMITERS[0]


def _csv_rows(path, lines: Sequence[Row], delimiter: str) -> Iterator[Row]:
    """Yields the rows of a .csv, as RFC 4180 has it.

    A field in quotation marks may have delimiters, line breaks, and marks that are doubled. Where a
    broken row ends is unknown, so it is an InputError.
    """
    reader = csv.reader((line.raw for line in lines), delimiter=delimiter, strict=True)
    begin = 0
    try:
        for fields in reader:
            own = lines[begin : reader.line_num]
            problem = next((line.problem for line in own if line.problem), None)
            yield Row(own[0].line, fields, "".join(line.raw for line in own), problem)
            begin = reader.line_num
    except csv.Error as error:
        line = lines[begin]
        problem = line.problem or f"must be CSV: {error}."
        raise InputError(f"`{path}` line {line.line} {problem}", Mistake.BAD_ROWS) from None


def _tab_rows(lines: Sequence[Row]) -> Iterator[Row]:
    """Yields the rows of a .tsv: a line each, with tabs between its fields and nothing quoted."""
    for line in lines:
        yield line._replace(fields=line.fields.split("\t"))


def object_rows(
    path: str | PurePath, encoding: str | None = None, names: Sequence[str] = ()
) -> Iterator[Row]:
    """Yields the objects of a .jsonl, one in each line, or of a .json, which is an array of them.

    An object without one of `names` has a `problem`. InputError if a .json is no array.
    """
    lines = line_rows(path, encoding)
    if PurePath(path).suffix.lower() == ".json":
        yield from _entries(path, lines, names)
        return
    while lines and not lines[-1].fields.strip():
        lines.pop()
    for row in lines:
        yield object_row(row, names)


def object_row(row: Row, names: Sequence[str] = ()) -> Row:
    """Returns a Row of a line with the JSON object in it, which must have `names`."""
    if row.problem is not None:
        return row
    try:
        record = parse_json(row.fields, object_pairs_hook=unique)
    except ValueError as error:
        reason = re.sub(r"( at)?: line 1 (column \d+) .*", r" at \2", str(error))
        shown = row.fields.strip()[:40] or "nothing"
        return row._replace(problem=f"must be a JSON object. Received: {shown}. {reason}.")
    return _checked_object(row, record, names)


def _entries(path, lines, names):
    """Yields the objects of a JSON array."""
    for line in lines:
        if line.problem is not None:
            raise InputError(f"`{path}` line {line.line} {line.problem}")
    try:
        content = parse_json("".join(line.raw for line in lines), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(
            f"`{path}` line {error.lineno} must be JSON, an array of objects: {error.msg} at "
            f"column {error.colno}. A file with an object in each line is a .jsonl."
        ) from None
    except ValueError as error:
        raise InputError(f"`{path}` must be JSON, an array of objects: {error}.") from None
    if not isinstance(content, list):
        raise InputError(
            f"`{path}` line 1 must be a JSON array of objects. Received: "
            f"{json.dumps(content, ensure_ascii=False)[:40]}."
        )
    for number, record in enumerate(content, start=1):
        raw = json.dumps(record, ensure_ascii=False)
        yield _checked_object(Row(number, raw, raw, entry=number), record, names)


def _checked_object(row, record, names):
    """Returns a row with an object that has all of `names`, or with its problem."""
    if not isinstance(record, dict):
        return row._replace(problem=f"must be a JSON object. Received: {row.raw.strip()[:40]}.")
    missing = [name for name in names if name not in record]
    problem = f"has no `{missing[0]}`{did_you_mean(missing[0], record)}" if missing else None
    return row._replace(fields=record, problem=problem)


def _with_names(row, names):
    if row.problem is not None:
        return row
    if len(row.fields) == len(names):
        return row._replace(fields=dict(zip(names, row.fields, strict=True)))
    rule = f"must have {len(names)} columns, like the first row"
    return row._replace(problem=f"{rule}. It has {len(row.fields)}.")


def _keys(path, header, columns):
    """Returns the names of columns that are given by name or number; InputError if one lacks."""
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise InputError(
            f"`{path}` line 1 must have a different name for each column. It has `{twice[0]}` "
            "more than once.",
            Mistake.NO_COLUMN,
        )
    keys = []
    for name in map(str, columns):
        if is_number(name) and int(name) < len(header):
            keys.append(header[int(name)])
        elif name in header:
            keys.append(name)
        else:
            fault = f"`{name}`{did_you_mean(name, header)}"
            if is_number(name):
                fault = f"{name}: it has {len(header)}, counted from 0."
            if len(header) == 1:
                fault += (
                    " In a .csv, `,`, `;`, `|` or a tab separates columns, or what `delimiter` "
                    "names; in a .tsv or .txt a tab does."
                )
            raise InputError(f"`{path}` line 1 has no column {fault}", Mistake.NO_COLUMN)
    return keys
