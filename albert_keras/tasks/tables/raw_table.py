"""Reads a .tsv, .csv or .jsonl as it is: a file → its header and all of its rows, as written."""

import codecs
import csv
import io
import itertools
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from albert_keras.tasks.tables.rows import is_number, without_last_blanks
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import bounded_lines, parse_json
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

logger = logging.getLogger(__name__)

#: Delimiter of each ending; an object per line has none.
_USUAL_DELIMITERS = {".tsv": "\t", ".csv": ",", ".jsonl": None}
_DELIMITERS = (",", ";", "\t", "|")
_USUAL_ENCODING = "utf-8"
#: Rows that are read to detect the delimiter, and the least share of them that must be as wide as
#: the first.
_SAMPLE_ROWS, _SAME_WIDTH = 200, 0.9
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # written by Excel
#: Bytes in which zeros reveal UTF-16 without a byte order mark, as every Latin letter, digit and
#: line break has one, and the least share of zeros in that half of the characters' bytes.
_SAMPLE_BYTES, _SOME_ZEROS = 1 << 16, 0.01
#: Text of Western Europe has at most this share of accented letters among its letters.
_MOST_ACCENTED = 0.25
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that `surrogateescape` could not decode
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is its beginning
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
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

    #: Names of the columns; without a header their numbers, from 0; None for a .jsonl.
    names: list[str] | None
    rows: list[Row]  # below the header; rows that cannot be used have a `problem`

    def keys(self, columns: Sequence[str | int]) -> list[int] | list[str]:
        """Returns what finds each of these columns in the `fields` of a row without a problem."""
        if self.names is None:
            return list(map(str, columns))
        return [
            int(column) if _is_position(column, self.names) else self.names.index(str(column))
            for column in columns
        ]

    def columns(self, row: Row) -> dict[str, Any]:
        """Returns all values of a row without a problem by the name of their column.

        A column with a blank name is called `column_2`, for instance, counted from 1; of columns
        with the same name all but the first get a number, such as `text_2`.
        """
        if isinstance(row.fields, dict):
            return dict(row.fields)
        columns: dict[str, Any] = {}
        for number, (name, value) in enumerate(zip(self.names, row.fields, strict=True), start=1):
            name = name.strip() or f"column_{number}"
            columns[name if name not in columns else f"{name}_{number}"] = value
        return columns


def read_raw_table(
    path: str | PurePath,
    columns: Sequence[str | int] = (),
    has_header: bool = True,
    encoding: str | None = None,
    is_official: bool = False,
) -> RawTable:
    """Reads all columns and rows of a table that ends in .tsv, .txt, .csv or .jsonl.

    A .csv may quote its fields, which may then contain delimiters and line breaks. In a .tsv with
    tabs nothing is quoted: a row is a line; a .txt is read like it. A .jsonl has an object per
    line. A byte order mark, CRLF and blank lines at the end make no difference.

    Args:
        columns: Columns that must exist, by name, or by number from 0; in a .jsonl always names.
        has_header: Whether the first row of a .tsv or .csv names the columns.
        encoding: None detects it. An encoding or a delimiter that was detected, and is not the
            usual one, is logged.
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
    given = _USUAL_ENCODING if is_official else encoding
    if ending not in _USUAL_DELIMITERS:
        raise InputError(f"`{path}` must end in .tsv, .txt, .csv or .jsonl.", Mistake.FILE_ENDING)
    with storage.open_to_read(path) as file:
        data = b"".join(bounded_lines(file, f"`{path}`"))
    text, encoding = _decoded(path, data, given)
    lines = list(io.StringIO(text, newline="\n"))  # only LF ends a line
    first = 1
    if ending == ".jsonl":
        delimiter, rows = None, _objects(lines, list(map(str, columns)))
    else:
        delimiter = "\t" if is_official else None
        if ending == ".csv" and lines and (named := _SEPARATOR_LINE.fullmatch(lines[0])):
            delimiter, lines, first = named[1], lines[1:], 2
        delimiter = delimiter or _detect_delimiter(lines, ending, columns, has_header)
        rows = _rows(lines, ending, delimiter, first)
    _log_detected(path, encoding if given is None else None, delimiter, ending)
    advice = "" if given else " --encoding selects another encoding."
    rows = [_decodable(row, encoding, advice) for row in without_last_blanks(rows)]
    if not rows:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    if ending == ".jsonl":
        return RawTable(None, rows)
    top = rows[0]
    has_header = has_header or _is_default_header(top.fields)
    if has_header and top.problem:
        raise InputError(f"`{path}` line {top.line} {top.problem}")
    names = top.fields if has_header else list(map(str, range(len(top.fields))))
    _check_columns(path, names, columns)
    rows = [_of_width(row, len(names)) for row in rows[has_header:]]
    return RawTable(names, rows)


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding; raises ValueError if Python has no such text encoding."""
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise ValueError(
            "must be the name of an encoding, such as utf-8, utf-16, windows-1252 or latin-1"
        ) from error
    return name


def _rows(lines, ending, delimiter, first=1) -> Iterator[Row]:
    """Yields the rows of a .tsv or .csv; after a broken one, reading resumes at its second line."""
    if (ending, delimiter) == (".tsv", "\t"):
        for number, line in enumerate(lines, start=first):
            yield Row(number, line.removesuffix("\n").removesuffix("\r").split(delimiter), line)
        return
    begin = 0
    while begin < len(lines):
        rest = (lines[number] for number in range(begin, len(lines)))
        reader = csv.reader(rest, delimiter=delimiter, strict=True)
        start = begin
        try:
            for fields in reader:
                end = begin + reader.line_num
                yield Row(first + start, fields, "".join(lines[start:end]))
                start = end
        except csv.Error as error:
            yield Row(first + start, [lines[start]], lines[start], f"must be CSV: {error}.")
        begin = start + 1


def _objects(lines, columns) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        text, problem = line.strip(), None
        try:
            record = parse_json(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            problem = f"must be a JSON object. Received: {text[:40] or 'nothing'}."
            record = [text]  # without text, as a blank line of the other formats
        elif missing := [name for name in columns if name not in record]:
            problem = f"has no `{missing[0]}`{did_you_mean(missing[0], record)}"
        yield Row(number, record, line, problem)


def _detect_delimiter(lines, ending, columns, has_header):
    """Detects the delimiter of a table: the usual one of its ending unless another suits better.

    A delimiter suits if the first row then has all `columns`, and next if most rows are as wide
    as the first, which has several columns. Of other signs than the usual ones, only one between
    the names of a header is a delimiter.
    """

    def suitability(delimiter):
        rows = itertools.islice(_rows(lines[: 2 * _SAMPLE_ROWS], ending, delimiter), _SAMPLE_ROWS)
        widths, top = [], []
        for row in rows:
            top = top or row.fields
            widths.append(len(row.fields) or len(top))  # a blank line tells nothing
        has_columns = all(
            has_header and str(column) in top or is_number(column) and int(column) < len(top)
            for column in columns
        )
        same = widths.count(len(top))
        return has_columns, len(top) > 1 and same >= _SAME_WIDTH * len(widths)

    usual = _USUAL_DELIMITERS[ending]
    best = max((usual, *_DELIMITERS), key=suitability)  # of equals the first
    if not suitability(best)[0] and has_header and lines:
        signs = dict.fromkeys(re.findall(r'[^\w\s"]', lines[0]))
        return next((sign for sign in signs if suitability(sign)[0]), best)
    return best


def _log_detected(path, encoding, delimiter, ending):
    """Logs what was detected, if it is not what the ending of the file leads to expect."""
    detected = []
    if encoding not in (None, _USUAL_ENCODING):
        detected.append(f"the encoding {encoding} (--encoding selects another)")
    if delimiter != _USUAL_DELIMITERS[ending]:
        shown = "a tab" if delimiter == "\t" else f"`{delimiter}`"
        detected.append(f"{shown} as the delimiter")
    if detected:
        logger.info("%s: detected %s.", path, " and ".join(detected))


def _decodable(row, encoding, advice):
    problem = _broken_byte(row.raw, encoding)
    return row if problem is None else row._replace(problem=problem + advice)


def _of_width(row, width):
    if row.problem is not None or len(row.fields) == width:
        return row
    rule = f"must have {width} columns, like the first row"
    return row._replace(problem=f"{rule}. It has {len(row.fields)}.")


def _is_default_header(fields):
    """Returns whether a row has the names 0, 1, 2, ... that a data frame gives its columns."""
    names = fields[1:] if fields[:1] == [""] else fields  # the first column is the index
    return len(names) > 1 and names == [str(number) for number in range(len(names))]


def _is_position(column, names):
    """Returns whether a column is given by its number, and not by a name that is a number."""
    return is_number(column) and not _is_default_header(names)


def _check_columns(path, names, columns):
    """Raises InputError with all columns that are missing."""
    faults = []
    for name in map(str, columns):
        if _is_position(name, names):
            if int(name) >= len(names):
                faults.append(f"has no column {name}: it has {len(names)}, counted from 0.")
        elif name not in names:
            faults.append(f"has no column `{name}`{did_you_mean(name, names)}")
        elif names.count(name) > 1:
            faults.append(f"must have one column `{name}`. It has {names.count(name)}.")
    if faults:
        message = "\n".join(f"`{path}` {fault}" for fault in faults)
        if len(names) == 1:
            message += (
                "\nDelimiters are `,`, `;`, `|` and tabs; or another sign, if a header has the "
                "names of the columns."
            )
        raise InputError(message, Mistake.NO_COLUMN)


def _decoded(path, data: bytes, encoding: str | None) -> tuple[str, str]:
    """Returns the text of a table and its encoding, which is detected if it is None.

    In the text, bytes that do not suit the encoding are surrogate escapes, see `_broken_byte`.

    Raises:
        InputError: If bytes do not suit an encoding whose characters have several bytes, UTF-16
            for instance, so that no row can be read.
    """
    encoding = encoding or _detect_encoding(data)
    try:
        text = data.decode(encoding, "surrogateescape")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` must be {encoding}. Its byte {error.start} (0x{data[error.start]:02x}) is "
            "not. Give its encoding with --encoding."
        ) from None
    return text.removeprefix("\ufeff"), encoding


def _broken_byte(raw: str, encoding: str) -> str | None:
    """Describes the first byte of a row that did not suit the encoding; None if all do."""
    found = _ESCAPED.search(raw)
    if found is None:
        return None
    position = len(raw[: found.start()].encode(encoding, "surrogateescape"))
    byte = f"Its byte {position} (0x{ord(found[0]) - 0xDC00:02x})"
    return f"must be {encoding.upper()}. {byte} is not."


def _detect_encoding(data):
    """Detects an encoding: by its byte order mark, as UTF-16 or UTF-8, or as Windows-1252.

    Windows-1252, which includes Latin-1, is guessed only for text that has neither valid UTF-8
    sequences nor more accented letters than the languages of Western Europe. All other bytes are
    called UTF-8, so that the rows with broken bytes are reported.
    """
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return name
    sample = data[:_SAMPLE_BYTES]
    even, odd = (sample[start::2].count(0) for start in (0, 1))
    if max(even, odd) > max(_SOME_ZEROS * len(sample) / 2, 2 * min(even, odd)):
        name = "utf-16-le" if odd > even else "utf-16-be"
        if _suits(data, name):
            return name
    if _suits(data, "utf-8"):
        return "utf-8"
    text = data.decode("utf-8", "surrogateescape")
    broken = len(_ESCAPED.findall(text))
    valid = sum(not letter.isascii() for letter in text) - broken
    letters = sum(letter.isascii() and letter.isalpha() for letter in text) + broken
    is_western = 10 * valid <= broken <= _MOST_ACCENTED * letters
    return "windows-1252" if is_western and _suits(data, "windows-1252") else "utf-8"


def _suits(data, encoding):
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
