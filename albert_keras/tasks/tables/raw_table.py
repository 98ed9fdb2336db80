"""Reads a .tsv, .csv or .jsonl as it is: a file → its header and all of its rows, as written."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from albert_keras.tasks.tables.delimited import (
    USUAL_DELIMITERS,
    split_rows,
    table_rows,
    without_last_blanks,
)
from albert_keras.tasks.tables.lines import (
    USUAL_ENCODING,
    decodable,
    line_rows,
    log_detected,
    read_lines,
)
from albert_keras.tasks.tables.rows import Row, is_number, remark
from data_pipeline.errors import InputError, Mistake
from data_pipeline.file_kinds import HTML, WIDE
from data_pipeline.limits import check_columns, parse_json, unique
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

JSON_ENDINGS = (".jsonl", ".json")
#: A line that is a text and what is known of it, not an array of objects.
_PAIR = re.compile(r'\[\s*".*\}\s*\]', re.DOTALL)
#: Columns in which Prodigy, Argilla, Mechanical Turk and Label Studio store what people decided
#: about a row: the values of rows that they keep, and of others, in lower case.
_DECISIONS = {
    "answer": (("accept",), ("reject", "ignore")),
    "status": (("pending", "draft", "submitted", "default", "edited", "validated"), ("discarded",)),
    "assignmentstatus": (("submitted", "approved"), ("rejected",)),
    "was_cancelled": (("false", "0"), ("true", "1")),
}


class RawTable(NamedTuple):
    """A table with all of its columns.

    A column with a blank name is called `column_2`, for instance, counted from 1; of columns with
    the same name all but the first get a number, such as `text_2`. Without a header, names are
    numbers from 0.
    """

    names: list[str]  # of the columns; none in a .jsonl or .json
    keys: list[str]  # the names of the columns that were asked for
    rows: list[Row]  # below the header; `fields` is a dict by names unless there is a `problem`


def read_raw_table(
    path: str | PurePath,
    columns: Sequence[str | int] = (),
    has_header: bool = True,
    encoding: str | None = None,
    is_official: bool = False,
) -> RawTable:
    """Reads all columns and rows of a table that ends in .tsv, .txt, .csv, .jsonl or .json.

    A .csv may quote its fields, which may then contain delimiters and line breaks. In a .tsv with
    tabs a row is a line and nothing is quoted, unless the file shows that it is; a .txt is read
    alike. A .jsonl or .json has an object per line, or an array of objects. A byte order mark,
    CRLF, CR alone and blank lines at the end make no difference.

    Args:
        columns: Columns that must exist, by name, or by number from 0; in a .jsonl always names.
        has_header: Whether the first row of a .tsv or .csv names the columns.
        encoding: None detects it. What was detected, and is not usual, is logged.
        is_official: Whether it is a .tsv in UTF-8 whatever its name, as the files of benchmarks.

    Returns:
        RawTable. A row that is broken, has another number of columns than the first, or lacks one
        of `columns` has a `problem`.

    Raises:
        InputError: If the file cannot be read or decoded, is empty, has an endless line, or lacks a
            column.
    """
    ending = ".tsv" if is_official else PurePath(path).suffix.lower()
    if ending == ".txt":
        ending = ".tsv"
    if ending in JSON_ENDINGS:
        names = list(map(str, columns))
        return RawTable([], names, without_last_blanks(object_rows(path, encoding, names)))
    if ending not in USUAL_DELIMITERS:
        storage.open_to_read(path, takes=(HTML, *WIDE)).close()  # names its kind
        raise InputError(
            f"`{path}` must end in .tsv, .txt, .csv, .jsonl or .json.", Mistake.FILE_ENDING
        )
    given = USUAL_ENCODING if is_official else encoding
    lines, encoding = read_lines(path, given)
    if is_official:
        rows = split_rows(lines, USUAL_DELIMITERS[ending])
    else:
        rows, unusual = table_rows(lines, ending, columns, has_header)
        log_detected(path, None if given else encoding, unusual)
    rows = [decodable(row, encoding, given) for row in without_last_blanks(rows)]
    if not rows:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    top = rows[0]
    check_columns(len(top.fields), path)
    has_header = has_header or _is_default_header(top.fields)
    if has_header and top.problem:
        raise InputError(f"`{path}` line {top.line} {top.problem}")
    header = top.fields if has_header else list(map(str, range(len(top.fields))))
    if has_header:
        header = _with_unnamed_column(header, [row.fields for row in rows[1:] if not row.problem])
    positions, names, seen = _positions(path, header, columns), [], set()
    for number, name in enumerate(header, start=1):
        name = name.strip() or f"column_{number}"
        names.append(name if name not in seen else f"{name}_{number}")
        seen.add(name)
    rows = [_with_names(row, names) for row in rows[has_header:]]
    return RawTable(names, [names[number] for number in positions], rows)


def object_rows(
    path: str | PurePath, encoding: str | None = None, names: Sequence[str] = ()
) -> Iterator[Row]:
    """Yields the objects of a .jsonl or .json as Rows: one in each line, or all in an array.

    An object may take several lines. A pair such as `["a text", {"entities": []}]`, as spaCy has
    it, is an object with that `text`.
    """
    lines = line_rows(path, encoding)
    first, *others = [line for row in lines if (line := row.fields.strip())] or [""]
    if first.startswith("[") and not _PAIR.fullmatch(first) and not (others and first[-1] == "]"):
        lines = _entries(lines, is_array=True)
    elif first.startswith("{") and not first.endswith("}"):
        entries = list(_entries(lines, is_array=False))
        lines = lines if object_row(entries[-1]).problem else entries  # a line is damaged
    for row in lines:
        yield object_row(row, names)


def kept(
    path: str | PurePath, rows: list[Row], remarks: list[str] | None, used: Sequence[str] = ()
) -> list[Row]:
    """Returns the rows that people did not reject, by `_DECISIONS` of columns that are not used."""
    named = [row.fields for row in rows if isinstance(row.fields, dict)]
    for column in dict.fromkeys(itertools.chain(*named)):
        if (name := column.lower().rpartition(".")[2]) not in _DECISIONS or column in used:
            continue
        good, bad = _DECISIONS[name]
        found = [row.fields.get(column) if isinstance(row.fields, dict) else None for row in rows]
        found = [None if one is None else str(one).lower() for one in found]
        if not all(one in (None, *good, *bad) for one in found):
            continue  # another column of this name
        out = [row.place() for row, one in zip(rows, found, strict=True) if one in bad]
        said = f"left out {len(out):,} rows whose `{column}` is {' or '.join(bad)}, the first in "
        remark(path, [said + place for place in out[:1]], remarks)
        rows = [row for row, one in zip(rows, found, strict=True) if one not in bad]
    return rows


def _entries(lines, is_array):
    """Yields the entries of a JSON array that takes all lines, or objects one after another."""
    text, decoder, line = "".join(row.raw for row in lines), json.JSONDecoder(strict=False), 1
    begin, end = 0, text.index("[") + 1 if is_array else 0
    space = re.compile(r"[\s,]*" if is_array else r"\s*")
    for number in itertools.count(1):
        start = space.match(text, end).end()
        line += text.count("\n", begin, start)
        begin = start
        # Only at the end of the array is the rest looked at, not at each of its entries.
        if begin == len(text) or text.startswith("]", begin) and not text[begin + 1 :].strip():
            return
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = len(text)
        entry = number if is_array else None
        yield Row(line, text[begin:end], text[begin:end], entry=entry)
        begin = end


def object_row(row: Row, names: Sequence[str] = ()) -> Row:
    """Returns a Row of a line with the JSON object in it, which must have `names`."""
    if row.problem is not None:
        return row
    text = row.fields.strip()
    try:
        record, reason = parse_json(text, strict=False, object_pairs_hook=unique), ""
    except ValueError as error:
        reason = re.sub(r"( at)?: line 1 (column \d+) .*", r" at \2", str(error))
        record, reason = None, f" {reason}: {text[getattr(error, 'pos', 0) :][:20]!r}."
    if isinstance(record, list) and list(map(type, record)) == [str, dict]:
        record = {"text": record[0]} | record[1]
    if not isinstance(record, dict):
        problem = f"must be a JSON object. Received: {text[:40] or 'nothing'}.{text and reason}"
        return row._replace(fields=[text], problem=problem)  # blank like those of other formats
    by_columns = record and all(
        isinstance(value, dict) and "0" in value for value in record.values()
    )
    if by_columns or record.keys() == {"columns", "index", "data"}:
        rule = (
            "must be one row. It has all: in pandas, `to_json(..., orient='records', lines=True)`"
        )
        return row._replace(fields=record, problem=f"{rule} writes rows.")
    missing = [name for name in names if name not in record]
    problem = f"has no `{missing[0]}`{did_you_mean(missing[0], record)}" if missing else None
    for place in _rows_within(record) if missing else ():
        problem += f" If `{place}` has the rows, write these alone, as an array."
    return row._replace(fields=record, problem=problem)


def _rows_within(record):
    """Yields the keys, such as `data.rows`, of the arrays of objects in an object."""
    for key, value in record.items():
        if isinstance(value, dict):
            yield from (f"{key}.{place}" for place in _rows_within(value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield key


def _with_names(row, names):
    if row.problem is not None:
        return row
    if len(row.fields) == len(names):
        return row._replace(fields=dict(zip(names, row.fields, strict=True)))
    rule = f"must have {len(names)} columns, like the first row"
    return row._replace(problem=f"{rule}. It has {len(row.fields)}.")


def _is_default_header(fields):
    """Returns whether a row has the names 0, 1, 2, ..., in any order, of a data frame's columns."""
    names = fields[1:] if fields[:1] == [""] else fields  # the first column is the index
    return len(names) > 1 and set(names) == {str(number) for number in range(len(names))}


def _with_unnamed_column(header, rows):
    """Returns a header with a blank name for a column that is in all rows but has none.

    R writes the numbers of rows so, and other programs a delimiter after the last field.
    """
    if {len(fields) for fields in rows} == {len(header) + 1}:
        if [fields[0] for fields in rows] == [str(1 + number) for number in range(len(rows))]:
            return ["", *header]
        if not any(fields[-1] for fields in rows):
            return [*header, ""]
    return header


def _positions(path, header, columns):
    """Returns the positions of columns; InputError with all that are missing."""
    positions, faults = [], []
    for name in map(str, columns):
        if is_number(name) and not _is_default_header(header):
            positions.append(int(name))
            if positions[-1] >= len(header):
                faults.append(f"has no column {name}: it has {len(header)}, counted from 0.")
        elif name in header:
            positions.append(header.index(name))
            if (count := header.count(name)) > 1:
                faults.append(f"must have one column `{name}`. It has {count}.")
        else:
            faults.append(f"has no column `{name}`{did_you_mean(name, header)}")
    if faults:
        message = "\n".join(f"`{path}` {fault}" for fault in faults)
        if len(header) == 1:
            message += (
                "\nDelimiters are `,`, `;`, `|` and tabs; or another sign, if a header has the "
                "names of the columns."
            )
        raise InputError(message, Mistake.NO_COLUMN)
    return positions
