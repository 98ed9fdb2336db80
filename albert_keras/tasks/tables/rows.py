"""Reads the rows of a .tsv, .csv or .jsonl: a file → the fields of each row, with its line."""

import csv
import itertools
import json
from collections.abc import Iterator
from pathlib import PurePath

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

_SHOWN = 5  # problems of a file in one message


class Problems:
    """The problems of a file's rows, collected to be reported together."""

    def __init__(self, path):
        self.path = path
        self.count = 0
        self._shown = []

    def add(self, line: int, problem: str):
        """Adds a problem of a line, from 1; the text continues "line 7 ..."."""
        self.count += 1
        if self.count <= _SHOWN:
            self._shown.append(f"line {line} {problem}")

    def check(self):
        """Raises InputError with the first few problems if there are any."""
        if self.count == 1:
            raise InputError(f"`{self.path}` {self._shown[0]}")
        if self.count:
            some = f", the first {_SHOWN}" if self.count > _SHOWN else ""
            listing = "\n".join(f"  {problem}" for problem in self._shown)
            raise InputError(f"{self.count} problems in `{self.path}`{some}:\n{listing}")


def is_number(column: str | int) -> bool:
    """Returns whether a column is given by number, not by name."""
    return str(column).isdecimal()


def read_rows(
    path: str | PurePath, columns: list[str | int], has_header: bool, problems: Problems
) -> Iterator[tuple[int, list]]:
    """Reads some columns of a table that ends in .tsv, .csv or .jsonl.

    Args:
        columns: Names, or numbers from 0; in a .jsonl always names.
        has_header: Whether the first row of a .tsv or .csv names the columns.
        problems: Receives the rows that cannot be used, which are skipped.

    Yields:
        The number of the row's first line, from 1, and the values of `columns` in this order: str,
        or any JSON value.

    Raises:
        InputError: If the file cannot be read, is not UTF-8 or has another format, is empty, or
            lacks a column.
    """
    extension = PurePath(path).suffix.lower()
    if extension == ".jsonl":
        return _json_values(path, columns, problems)
    if extension not in (".tsv", ".csv"):
        raise InputError(f"`{path}` must end in .tsv, .csv or .jsonl.")
    rows = tsv_rows(path) if extension == ".tsv" else _without_last_blanks(_csv_rows(path))
    return _values(path, rows, columns, has_header, problems)


def tsv_rows(path: str | PurePath) -> Iterator[tuple[int, list[str]]]:
    """Yields line, from 1, and fields of the rows of tab-separated values without quoting.

    Only LF or CRLF ends a line; other control characters are text. Blank lines at the end of the
    file are skipped. InputError if the file cannot be read or is not UTF-8.
    """
    return _without_last_blanks(
        (line, text.removesuffix("\n").removesuffix("\r").split("\t"))
        for line, text in numbered_lines(path)
    )


def _csv_rows(path):
    reader = csv.reader((text for _, text in numbered_lines(path)), strict=True)
    line = 1
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"`{path}` line {line} must be CSV: {error}.") from None


def numbered_lines(path):
    """Yields (number, text) of each line, including its end."""
    with storage.open_to_read(path) as file:
        for line, data in enumerate(file, start=1):
            try:
                yield line, data.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"`{path}` line {line} must be UTF-8. "
                    f"Its byte {error.start} (0x{data[error.start]:02x}) is not."
                ) from None


def _without_last_blanks(rows):
    blanks = []
    for row in rows:
        if row[1] in ([], [""]):
            blanks.append(row)
        else:
            yield from blanks
            blanks.clear()
            yield row


def _values(path, rows, columns, has_header, problems):
    """Yields (line, values of `columns`) of each row; rows of another width are problems."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    top = first[1]
    numbers = _numbers(path, top, columns, has_header)
    for line, fields in rows if has_header else itertools.chain([first], rows):
        if len(fields) == len(top):
            yield line, [fields[number] for number in numbers]
        else:
            rule = f"must have {len(top)} columns, like the first row"
            problems.add(line, f"{rule}. It has {len(fields)}.")


def _numbers(path, top, columns, has_header):
    """Returns the number of each column; InputError with all that are missing."""
    faults = []
    for column in columns:
        if is_number(column):
            if int(column) >= len(top):
                faults.append(f"has no column {column}: it has {len(top)}, counted from 0.")
        elif not has_header:
            faults.append(f"has no header, so `{column}` must be the number of a column.")
        elif column not in top:
            faults.append(f"has no column `{column}`{did_you_mean(column, top)}")
        elif top.count(column) > 1:
            faults.append(f"must have one column `{column}`. It has {top.count(column)}.")
    if faults:
        raise InputError("\n".join(f"`{path}` {fault}" for fault in faults))
    return [int(column) if is_number(column) else top.index(column) for column in columns]


def _json_values(path, columns, problems):
    texts = ((line, [text.strip()]) for line, text in numbered_lines(path))
    columns = [str(column) for column in columns]
    for line, (text,) in _without_last_blanks(texts):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            problems.add(line, f"must be a JSON object. Received: {text[:40] or 'nothing'}.")
            continue
        missing = [name for name in columns if name not in record]
        for name in missing:
            problems.add(line, f"has no `{name}`" + did_you_mean(name, record))
        if not missing:
            yield line, [record[name] for name in columns]
