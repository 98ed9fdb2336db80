"""Lines of a .tsv or .csv → rows of cells, whatever separates and quotes them."""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from albert_keras.tasks.tables.rows import Row, is_number

#: Delimiter of each ending.
USUAL_DELIMITERS = {".tsv": "\t", ".csv": ","}
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
#: Lines in a field that are rows if no column has a kind.
_LEAST_SWALLOWED = 5
_NUMBER = re.compile(r"\s*[-+]?[\d.,]+(?:[eE][-+]?\d+)?\s*")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # written by Excel
#: Rows that are read to detect the delimiter, and the least share of them that must be as wide as
#: the first.
_SAMPLE_ROWS, _SAME_WIDTH = 200, 0.9
# The text of a row may be longer than the 131,072 characters that Python allows by default.
csv.field_size_limit(2**31 - 1)


def table_rows(
    lines: list[str], ending: str, columns: Sequence[str | int], has_header: bool
) -> tuple[Iterable[Row], list[str]]:
    """Splits the lines of a table, whose delimiter and quotation marks are detected.

    Args:
        ending: Of its name, .tsv or .csv.
        columns, has_header: As of `read_raw_table`.

    Returns:
        The rows, and what is not as the ending leads to expect, for people.
    """
    named, first = _SEPARATOR_LINE.fullmatch(lines[0]) if ending == ".csv" and lines else None, 1
    if named:
        lines, first = lines[1:], 2
    delimiter = named[1] if named else _detect_delimiter(lines, ending, columns, has_header)
    quoting, unusual = _detect_quoting(lines, ending, delimiter), []
    rows: Iterable[Row] = split_rows(lines, delimiter, quoting, first)
    if quoting is not _UNQUOTED:
        rows = _without_swallowed(list(rows), delimiter, quoting)
    if delimiter != USUAL_DELIMITERS[ending]:
        shown = "a tab" if delimiter == "\t" else f"`{delimiter}`"
        unusual.append(f"{shown} as the delimiter")
    if quoting is not _usual_quoting(ending, delimiter):
        unusual.append(quoting)
    return rows, unusual


def _detect_delimiter(lines, ending, columns, has_header):
    """Detects the delimiter of a table: the usual one of its ending unless another suits better.

    A delimiter suits if the first row then has all `columns`, and next if most rows are as wide
    as the first, which has several columns. Of other signs than the usual ones, only one between
    the names of a header is a delimiter.
    """

    def suitability(delimiter):
        rows = split_rows(lines[: 2 * _SAMPLE_ROWS], delimiter, _usual_quoting(ending, delimiter))
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
    usual = USUAL_DELIMITERS[ending]
    return max((usual, *_DELIMITERS, *dict.fromkeys(signs)), key=suitability)  # of equals the first


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


def _usual_quoting(ending, delimiter):
    return _UNQUOTED if (ending, delimiter) == (".tsv", "\t") else _DOUBLED


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
    rows = without_last_blanks(split_rows(lines, "\t", _DOUBLED))
    return len({0 if row.problem else len(row.fields) for row in rows if any(row.fields)}) == 1


def split_rows(
    lines: list[str], delimiter: str, quoting: str = _UNQUOTED, first: int = 1
) -> Iterator[Row]:
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
            pending += list(split_rows(lines[1:], delimiter, quoting, row.line + 1))[::-1]
        else:
            yield row


def _kind_of(column):
    """Returns whether a value is of the kind of a column, as a function; None if any value is."""
    values = set(column)
    if all(map(_NUMBER.fullmatch, values)):
        return _NUMBER.fullmatch
    return values.__contains__ if 2 * len(values) <= len(column) else None


def without_last_blanks(rows: Iterable[Row]) -> list[Row]:
    """Returns rows without the blank ones at their end."""
    rows = list(rows)
    while rows and rows[-1].fields in ([], [""]):
        rows.pop()
    return rows
