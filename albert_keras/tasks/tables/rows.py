"""Reads the rows of a .tsv, .csv or .jsonl: a file → the fields of each row, with its line.

What cannot be read is refused with file, line and reason.
"""

import csv
import itertools
import json
from pathlib import PurePath

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

#: How many problems of a file are told in full.
MAX_PROBLEMS_TOLD = 5


class Problems:
    """What is wrong with the rows of a file, gathered to be told at once."""

    def __init__(self, path):
        self.path = path
        self.count = 0
        self._told = []

    def add(self, line, says):
        """Adds a problem: int `line`, 1-based, and str `says`, which completes "line 7 ..."."""
        self.count += 1
        if self.count <= MAX_PROBLEMS_TOLD:
            self._told.append(f"line {line} {says}")

    def check(self):
        """Raises InputError with the first few problems if there are any."""
        if self.count == 1:
            raise InputError(f"`{self.path}` {self._told[0]}")
        if self.count:
            some = f", the first {MAX_PROBLEMS_TOLD}" if self.count > MAX_PROBLEMS_TOLD else ""
            listing = "\n".join(f"  {says}" for says in self._told)
            raise InputError(f"{self.count} problems in `{self.path}`{some}:\n{listing}")


def is_number(column) -> bool:
    """Tells whether a column is given by number, int or str of digits, not by name."""
    return str(column).isdecimal()


def read_rows(path, columns, has_header, problems):
    """Reads some columns of a table.

    Args:
        path: str or Path. Ends in .tsv, .csv or .jsonl.
        columns: list of str or int. Names, or numbers from 0; in a .jsonl always names.
        has_header: bool. Whether the first row of a .tsv or .csv names the columns.
        problems: Problems. Takes the rows that cannot be used, which are left out.

    Yields:
        tuple (int, list). The number of the row's first line, from 1, and the values of `columns`
        in this order: str, or whatever JSON holds.

    Raises:
        InputError: If the file cannot be read, is not UTF-8 or of another format, is empty, or
            lacks a column.
    """
    extension = PurePath(path).suffix.lower()
    if extension == ".tsv":
        return _values(path, tsv_rows(path), columns, has_header, problems)
    if extension == ".csv":
        return _values(path, _without_last_blanks(_csv_rows(path)), columns, has_header, problems)
    if extension == ".jsonl":
        return _json_values(path, columns, problems)
    raise InputError(f"`{path}` should end in .tsv, .csv or .jsonl. It does not.")


def tsv_rows(path):
    """Yields the rows of a file of tab-separated values, which quotes nothing.

    A line ends with LF or CRLF and nothing else; other control characters are text.

    Args:
        path: str or Path.

    Yields:
        tuple (int, list of str). The number of the line, from 1, and its fields. Blank lines at
        the end of the file are left out.

    Raises:
        InputError: If the file cannot be read or is not UTF-8.
    """
    lines = ((line, _without_end(text).split("\t")) for line, text in _lines(path))
    return _without_last_blanks(lines)


def _csv_rows(path):
    reader = csv.reader((text for _, text in _lines(path)), strict=True)
    line = 1
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"`{path}` line {line} should be CSV: {error}.") from None


def _lines(path):
    """Yields (number, text) of each line, its end included."""
    with storage.open_to_read(path) as file:
        for line, data in enumerate(file, start=1):
            try:
                yield line, data.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"`{path}` line {line} should be UTF-8. "
                    f"Its byte {error.start} (0x{data[error.start]:02x}) is not."
                ) from None


def _without_end(text):
    return text.removesuffix("\n").removesuffix("\r")


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
        raise InputError(f"`{path}` should hold at least one row. It holds none.")
    top = first[1]
    places = _places(path, top, columns, has_header)
    for line, fields in rows if has_header else itertools.chain([first], rows):
        if len(fields) == len(top):
            yield line, [fields[place] for place in places]
        else:
            rule = f"should have {len(top)} columns, as the first row"
            problems.add(line, f"{rule}. It has {len(fields)}.")


def _places(path, top, columns, has_header):
    """Returns the number of each column; tells all that are missing."""
    faults = []
    for column in columns:
        if is_number(column):
            if int(column) >= len(top):
                faults.append(f"has no column {column}: it has {len(top)}, counted from 0.")
        elif not has_header:
            faults.append(f"has no header, so `{column}` should be the number of a column.")
        elif column not in top:
            faults.append(f"has no column `{column}`{did_you_mean(column, top)}")
        elif top.count(column) > 1:
            faults.append(f"should have one column `{column}`. It has {top.count(column)}.")
    if faults:
        raise InputError("\n".join(f"`{path}` {fault}" for fault in faults))
    return [int(column) if is_number(column) else top.index(column) for column in columns]


def _json_values(path, columns, problems):
    texts = ((line, [text.strip()]) for line, text in _lines(path))
    columns = [str(column) for column in columns]
    for line, (text,) in _without_last_blanks(texts):
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            problems.add(line, f"should be a JSON object. Received: {text[:40] or 'nothing'}.")
            continue
        missing = [name for name in columns if name not in record]
        for name in missing:
            problems.add(line, f"has no `{name}`" + did_you_mean(name, record))
        if not missing:
            yield line, [record[name] for name in columns]
