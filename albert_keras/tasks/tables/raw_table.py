"""Reads a .tsv, .csv or .jsonl as it is: a file → its header and all of its rows, as written."""

import codecs
import csv
import io
import itertools
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from albert_keras.tasks.tables.rows import Row, is_number
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import bounded_lines, check_columns, parse_json
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

logger = logging.getLogger(__name__)

JSON_ENDINGS = (".jsonl", ".json")
#: Delimiter of each ending.
_USUAL_DELIMITERS = {".tsv": "\t", ".csv": ","}
_DELIMITERS = (",", ";", "\t", "|")
#: How fields are quoted: not at all; or in quotation marks, which are doubled inside a field, or
#: have a backslash before them.
_UNQUOTED, _DOUBLED, _BACKSLASHES = "none", "quotation marks", "backslashes before quotation marks"
#: What only files with quoted fields have, even a .tsv: marks that are doubled in a field between
#: marks, and a first line of several such fields. Spreadsheets mark fields with a comma, too.
_QUOTED_FIELD = re.compile(r'(?:^|\t)"(?:[^"\t]|"")*""(?:[^"\t]|"")*"(?:\t|\r?\n?$)')
_QUOTED_LINE = re.compile(r'"[^"\t]*"(?:\t"[^"\t]*")+\s*')
_QUOTED_COMMA = re.compile(r'(?:^|\t)"[^"\t]*,[^"\t]*"(?=\t|\r?\n?$)')
_LEAST_COMMAS = 3
#: A line that is a text and what is known of it, not an array of objects.
_PAIR = re.compile(r'\[\s*".*\}\s*\]', re.DOTALL)
_USUAL_ENCODING = "utf-8"
#: Lines in a field that are rows if no column has a kind.
_LEAST_SWALLOWED = 5
_NUMBER = re.compile(r"\s*[-+]?[\d.,]+(?:[eE][-+]?\d+)?\s*")
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
        return RawTable([], names, _without_last_blanks(object_rows(path, encoding, names)))
    if ending not in _USUAL_DELIMITERS:
        raise InputError(
            f"`{path}` must end in .tsv, .txt, .csv, .jsonl or .json.", Mistake.FILE_ENDING
        )
    given = _USUAL_ENCODING if is_official else encoding
    lines, encoding = _read_lines(path, given)
    delimiter, quoting, first = "\t", _UNQUOTED, 1
    if not is_official:
        named = _SEPARATOR_LINE.fullmatch(lines[0]) if ending == ".csv" and lines else None
        if named:
            lines, first = lines[1:], 2
        delimiter = named[1] if named else _detect_delimiter(lines, ending, columns, has_header)
        quoting = _detect_quoting(lines, ending, delimiter)
    rows = _rows(lines, delimiter, quoting, first)
    if quoting is not _UNQUOTED:
        rows = _without_swallowed(list(rows), delimiter, quoting)
    _log_detected(path, None if given else encoding, ending, delimiter, quoting)
    rows = [_decodable(row, encoding, given) for row in _without_last_blanks(rows)]
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


def line_rows(path: str | PurePath, encoding: str | None = None) -> list[Row]:
    """Returns the lines of a file as Rows, whose `fields` are the text without its line break.

    For `encoding` and errors see `read_raw_table`; a line that is not decoded has a `problem`.
    """
    lines, found = _read_lines(path, encoding)
    _log_detected(path, None if encoding else found)
    return [
        # A byte order mark is inside where files were joined.
        _decodable(Row(number, line.removeprefix("\ufeff").rstrip("\r\n"), line), found, encoding)
        for number, line in enumerate(lines, start=1)
    ]


def object_rows(
    path: str | PurePath, encoding: str | None = None, names: Sequence[str] = ()
) -> Iterator[Row]:
    """Yields the objects of a .jsonl or .json as Rows: one in each line, or all in an array.

    A pair such as `["a text", {"entities": []}]`, as spaCy has it, is an object with that `text`.
    """
    lines = line_rows(path, encoding)
    first = next((row.fields.strip() for row in lines if row.fields.strip()), "")
    is_array = first.startswith("[") and not _PAIR.fullmatch(first)
    for row in _entries(lines) if is_array else lines:
        yield object_row(row, names)


def _entries(lines):
    """Yields the entries of a JSON array that takes all lines as Rows."""
    text, decoder, line = "".join(row.raw for row in lines), json.JSONDecoder(strict=False), 1
    begin, end = 0, text.index("[") + 1
    for number in itertools.count(1):
        start = re.compile(r"[\s,]*").match(text, end).end()
        line += text.count("\n", begin, start)
        begin = start
        # Only at the end of the array is the rest looked at, not at each of its entries.
        if text.startswith("]", begin) and not text[begin + 1 :].strip():
            return
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            end = len(text)
        yield Row(line, text[begin:end], text[begin:end], entry=number)
        begin = end
        if begin == len(text):
            return


def object_row(row: Row, names: Sequence[str] = ()) -> Row:
    """Returns a Row of a line with the JSON object in it, which must have `names`."""
    if row.problem is not None:
        return row
    text = row.fields.strip()
    try:
        record = parse_json(text, strict=False)
    except ValueError:
        record = None
    if isinstance(record, list) and list(map(type, record)) == [str, dict]:
        record = {"text": record[0]} | record[1]
    if not isinstance(record, dict):
        problem = f"must be a JSON object. Received: {text[:40] or 'nothing'}."
        return row._replace(fields=[text], problem=problem)  # blank like those of other formats
    missing = [name for name in names if name not in record]
    problem = f"has no `{missing[0]}`{did_you_mean(missing[0], record)}" if missing else None
    return row._replace(fields=record, problem=problem)


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding; raises ValueError if Python has no such text encoding."""
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise ValueError(
            "must be the name of an encoding, such as utf-8, utf-16, windows-1252 or latin-1"
        ) from error
    return name


def _read_lines(path, encoding) -> tuple[list[str], str]:
    """Returns the lines of a file, with their ends, and its encoding, detected if it is None.

    Bytes that do not suit it are surrogate escapes, see `_decodable`; InputError if its characters
    have several bytes, as in UTF-16, so that no line can be read.
    """
    with storage.open_to_read(path) as file:
        data = b"".join(bounded_lines(file, f"`{path}`"))
    encoding = encoding or _detect_encoding(data)
    try:
        text = data.decode(encoding, "surrogateescape").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` must be {encoding}. Its byte {error.start} (0x{data[error.start]:02x}) is "
            "not. Give its `encoding`."
        ) from None
    if text.count("\r") - text.count("\r\n") > text.count("\n"):  # of the first Macintosh
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return list(io.StringIO(text, newline="\n")), encoding  # only LF ends a line


def _rows(lines, delimiter, quoting, first=1) -> Iterator[Row]:
    """Yields the rows of a .tsv or .csv; after a broken one, reading resumes at its second line."""
    if quoting is _UNQUOTED:
        for number, line in enumerate(lines, start=first):
            yield Row(number, line.removesuffix("\n").removesuffix("\r").split(delimiter), line)
        return
    escape = {"escapechar": "\\", "doublequote": False} if quoting is _BACKSLASHES else {}
    top = lines[0] if lines else ""
    skips_spaces = 0 < top.count(delimiter) == top.count(f"{delimiter} ")
    if escape:  # \N without marks is no escaped letter, but the NULL of a database
        null = re.compile(rf"(?<![^{re.escape(delimiter)}])\\N(?=[{re.escape(delimiter)}\r\n])")
        lines = [null.sub(r"\\\\N", line) for line in lines]
    begin = 0
    while begin < len(lines):
        rest = (lines[number] for number in range(begin, len(lines)))
        reader = csv.reader(
            rest, delimiter=delimiter, strict=True, skipinitialspace=skips_spaces, **escape
        )
        start = begin
        try:
            for fields in reader:
                end = begin + reader.line_num
                yield Row(first + start, fields, "".join(lines[start:end]))
                start = end
        except csv.Error as error:
            yield Row(first + start, [lines[start]], lines[start], f"must be CSV: {error}.")
        begin = start + 1


def _without_swallowed(rows, delimiter, quoting) -> Iterator[Row]:
    """Yields rows; one whose lines are rows themselves has a problem, and its lines are read again.

    That is what a quotation mark makes of the lines up to the next mark if it is only meant as
    text, such as that of inches. Lines are rows if all of them have as many fields as the others,
    of the same kinds: in a column of numbers a number, and in one of a few names one of these.
    """
    width = len(rows[0].fields) if rows else 0
    single = [row.fields for row in rows[1:] if "\n" not in row.raw.rstrip() and not row.problem]
    columns = list(zip(*(fields for fields in single if len(fields) == width), strict=True))
    kinds = [_kind_of(column) for column in columns]
    pending = rows[::-1]
    while pending:
        row = pending.pop()
        lines = row.raw.splitlines(keepends=True) if row.problem is None else []
        cells = [line.rstrip("\r\n").split(delimiter) for line in lines]
        is_swallowed = len(lines) > 1 < width and {len(fields) for fields in cells} == {width}
        if is_swallowed and any(kinds):
            is_swallowed = all(
                kind is None or kind(fields[at])
                for fields in cells
                for at, kind in enumerate(kinds)
            )
        elif is_swallowed:
            is_swallowed = len(lines) >= _LEAST_SWALLOWED and all(map(all, cells))
        if is_swallowed:
            problem = (
                f"has a quotation mark that is closed in line {row.line + len(lines) - 1}, "
                "but the lines up to there are rows. Double the mark if it belongs to the text, "
                "and put the field into marks, or remove it."
            )
            yield row._replace(fields=[lines[0]], raw=lines[0], problem=problem)
            pending += list(_rows(lines[1:], delimiter, quoting, row.line + 1))[::-1]
        else:
            yield row


def _kind_of(column):
    """Returns whether a value is of the kind of a column, as a function; None if any value is."""
    values = set(column)
    if all(map(_NUMBER.fullmatch, values)):
        return _NUMBER.fullmatch
    return values.__contains__ if 2 * len(values) <= len(column) else None


def _without_last_blanks(rows: Iterable[Row]) -> list[Row]:
    rows = list(rows)
    while rows and rows[-1].fields in ([], [""]):
        rows.pop()
    return rows


def _usual_quoting(ending, delimiter):
    return _UNQUOTED if (ending, delimiter) == (".tsv", "\t") else _DOUBLED


def _detect_quoting(lines, ending, delimiter):
    """Detects how fields are quoted, from fields that are broken or look odd if quoted as usual."""
    if _usual_quoting(ending, delimiter) is _UNQUOTED:
        if not any('"' in line for line in lines):
            return _UNQUOTED
        signs = *map(_QUOTED_LINE.fullmatch, lines[:1]), *map(_QUOTED_FIELD.search, lines)
        if any(signs) or _has_marked_commas(lines) or _has_lines_in_fields(lines):
            return _DOUBLED
        return _UNQUOTED
    sign = re.escape(delimiter)
    escaped = re.compile(rf"""(?:^|{sign})"[^"]*\\"[^"{sign}\s]""")
    return _BACKSLASHES if any(map(escaped.search, lines)) else _DOUBLED


def _has_marked_commas(lines):
    """Returns whether there are marks around all fields with a comma, and around no others."""
    fields = [field for line in lines for field in line.rstrip("\r\n").split("\t")]
    with_comma = [field for field in fields if "," in field]
    marked = [field for field in fields if field.startswith('"')]
    return (
        len(marked) >= _LEAST_COMMAS
        and marked == with_comma
        and all(map(_QUOTED_COMMA.fullmatch, marked))
    )


def _has_lines_in_fields(lines):
    """Returns whether rows are alike in width only if fields in marks contain tabs and lines."""
    if len({line.count("\t") for line in lines if line.strip()}) < 2:
        return False
    rows = _without_last_blanks(_rows(lines, "\t", _DOUBLED))
    return len({0 if row.problem else len(row.fields) for row in rows if any(row.fields)}) == 1


def _detect_delimiter(lines, ending, columns, has_header):
    """Detects the delimiter of a table: the usual one of its ending unless another suits better.

    A delimiter suits if the first row then has all `columns`, and next if most rows are as wide
    as the first, which has several columns. Of other signs than the usual ones, only one between
    the names of a header is a delimiter.
    """

    def suitability(delimiter):
        rows = _rows(lines[: 2 * _SAMPLE_ROWS], delimiter, _usual_quoting(ending, delimiter))
        widths, top = [], []
        for row in itertools.islice(rows, _SAMPLE_ROWS):
            top = top or row.fields
            widths.append(len(row.fields) or len(top))  # a blank line tells nothing
        has_columns = all(
            has_header and str(column) in top or is_number(column) and int(column) < len(top)
            for column in columns
        )
        is_wide = len(top) > 1 and widths.count(len(top)) >= _SAME_WIDTH * len(widths)
        return has_columns, is_wide and (has_columns or delimiter in _DELIMITERS)

    signs = re.findall(r'[^\w\s"]', lines[0]) if has_header and lines else []
    usual = _USUAL_DELIMITERS[ending]
    return max((usual, *_DELIMITERS, *dict.fromkeys(signs)), key=suitability)  # of equals the first


def _log_detected(path, encoding, ending=None, delimiter=None, quoting=None):
    """Logs what was detected, if it is not what the ending of the file leads to expect."""
    detected = []
    if encoding not in (None, _USUAL_ENCODING):
        detected.append(f"the encoding {encoding} (`encoding` selects another)")
    if delimiter != _USUAL_DELIMITERS.get(ending):
        shown = "a tab" if delimiter == "\t" else f"`{delimiter}`"
        detected.append(f"{shown} as the delimiter")
    if delimiter is not None and quoting is not _usual_quoting(ending, delimiter):
        detected.append(quoting)
    if detected:
        logger.info("%s: detected %s.", path, " and ".join(detected))


def _decodable(row, encoding, given):
    """Adds a problem to a row with a byte that did not suit the encoding."""
    found = _ESCAPED.search(row.raw)
    if found is None:
        return row
    position = len(row.raw[: found.start()].encode(encoding, "surrogateescape"))
    byte = f"Its byte {position} (0x{ord(found[0]) - 0xDC00:02x})"
    advice = "" if given else " `encoding` selects another one."
    return row._replace(problem=f"must be {encoding.upper()}. {byte} is not.{advice}")


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
