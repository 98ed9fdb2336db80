"""The dialect of a table: its encoding and its delimiter, as given or detected."""

import codecs
import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from data_pipeline.errors import InputError

#: Delimiter of each ending; an object per line has none.
USUAL_DELIMITERS = {".tsv": "\t", ".csv": ",", ".jsonl": None}
_USUAL_ENCODING = "utf-8"
_DELIMITERS = (",", ";", "\t", "|")
_NAMES = {"tab": "\t", "\\t": "\t"}
#: Rows that are read to detect the delimiter, and the least share of them that must be as wide as
#: the first.
_SAMPLE_ROWS, _SAME_WIDTH = 200, 0.9
#: Bytes in which zeros reveal UTF-16 without a byte order mark, as every Latin letter, digit and
#: line break has one, and the least share of zeros in that half of the characters' bytes.
_SAMPLE_BYTES, _SOME_ZEROS = 1 << 16, 0.01
#: Text of Western Europe has at most this share of accented letters among its letters.
_MOST_ACCENTED = 0.25
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that `surrogateescape` could not decode
_ACCENTED = re.compile("[^\x00-\x7f]")
_LETTERS = re.compile("[A-Za-z]")
_WORD = re.compile(r"\w*[^\W\x00-\x7f]\w*")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?', re.IGNORECASE)  # written by Excel

_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is its beginning
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Dialect(NamedTuple):
    """How a table is written. As an argument, None means that the value is detected."""

    encoding: str | None = None
    delimiter: str | None = None  # one character; None in a .jsonl


#: Everything is detected.
DETECTED = Dialect()


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding; raises ValueError if Python has no such text encoding."""
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise ValueError(
            "must be the name of an encoding, such as utf-8, utf-16, windows-1252 or latin-1"
        ) from error
    return name


def checked_delimiter(delimiter: str) -> str:
    r"""Returns a delimiter, a tab for "tab" or "\t"; raises ValueError if it cannot be one."""
    delimiter = _NAMES.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter.isalnum() or delimiter in '"\r\n ':
        raise ValueError(
            "must be one character that is not a letter, digit, space, line break or quotation "
            "mark, or `tab`"
        )
    return delimiter


def decoded(path, data: bytes, encoding: str | None) -> tuple[str, str]:
    """Decodes a table.

    Args:
        path: Location, for messages.
        encoding: None to detect it.

    Returns:
        The text, in which bytes that do not suit the encoding are surrogate escapes, and the
        encoding.

    Raises:
        InputError: If bytes do not suit an encoding whose characters have several bytes, UTF-16
            for instance, so that no row can be read.
    """
    encoding = encoding or detect_encoding(data)
    try:
        text = data.decode(encoding, "surrogateescape")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` must be {encoding}. Its byte {error.start} (0x{data[error.start]:02x}) is "
            "not. Give its encoding with --encoding."
        ) from None
    return text.removeprefix("\ufeff"), encoding


def detect_encoding(data: bytes) -> str:
    """Detects an encoding: by its byte order mark, as UTF-16 or UTF-8, or as Windows-1252.

    Windows-1252, which includes Latin-1, is guessed only for text that has neither valid UTF-8
    sequences nor more accented letters than the languages of Western Europe. All other bytes are
    called UTF-8, so that the rows with broken bytes are reported.
    """
    for mark, name in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return name
    sample = data[:_SAMPLE_BYTES]
    even, odd = (sample[start::2].count(0) / max(len(sample) / 2, 1) for start in (0, 1))
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros > max(_SOME_ZEROS, 2 * others) and _suits(data, name):
            text = data.decode(name)
            if "\n" in text and "\0" not in text:
                return name
    if _suits(data, _USUAL_ENCODING):
        return _USUAL_ENCODING
    text = data.decode("utf-8", "surrogateescape")
    broken = len(_ESCAPED.findall(text))
    valid = len(_ACCENTED.findall(text)) - broken
    letters = len(_LETTERS.findall(text)) + broken
    is_western = 10 * valid <= broken <= _MOST_ACCENTED * letters
    return "windows-1252" if is_western and _suits(data, "windows-1252") else _USUAL_ENCODING


def _suits(data, encoding):
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def broken_byte(raw: str, encoding: str) -> str | None:
    """Describes the first byte of a row that did not suit the encoding; None if all do."""
    found = _ESCAPED.search(raw)
    if found is None:
        return None
    name = encoding.upper() if encoding.lower().startswith("utf") else encoding
    position = len(raw[: found.start()].encode(encoding, "surrogateescape"))
    return f"must be {name}. Its byte {position} (0x{ord(found[0]) - 0xDC00:02x}) is not."


def separator_line(lines: Sequence[str], ending: str) -> str | None:
    """Returns the delimiter that a first line such as `sep=;` of Excel names; None without one."""
    found = _SEPARATOR_LINE.fullmatch(lines[0]) if lines and ending == ".csv" else None
    return found and found[1]


def detect_delimiter(
    lines: Sequence[str], ending: str, columns: Sequence[str | int], has_header: bool
) -> str:
    """Detects the delimiter of a table: the usual one of its ending unless another suits better.

    A delimiter suits if the first row then has all `columns`, and next if most rows are as wide
    as the first, which has several columns.
    """
    usual = USUAL_DELIMITERS[ending]

    def suitability(delimiter):
        rows = [fields for fields in _sample(lines, ending, delimiter) if fields]
        top = rows[0] if rows else []
        has_columns = all(
            int(column) < len(top) if str(column).isdecimal() else has_header and column in top
            for column in columns
        )
        same = sum(len(fields) == len(top) for fields in rows)
        return has_columns, len(top) > 1 and same >= _SAME_WIDTH * len(rows)

    others = (delimiter for delimiter in _DELIMITERS if delimiter != usual)
    return max((usual, *others), key=suitability)  # of equals the first


def has_quotes(ending: str, delimiter: str) -> bool:
    """Returns whether fields may be quoted: not in tab-separated values that end in .tsv."""
    return (ending, delimiter) != (".tsv", "\t")


def description(dialect: Dialect, given: Dialect, ending: str, text: str) -> str | None:
    """Describes what was detected, if it is not what the ending of the file leads to expect."""
    detected = []
    if given.encoding is None and dialect.encoding != _USUAL_ENCODING:
        word = _WORD.search(text)
        sample = f" (for example `{word[0][:30]}`)" if word else ""
        detected.append(f"the encoding {dialect.encoding}{sample}")
    if given.delimiter is None and dialect.delimiter != USUAL_DELIMITERS[ending]:
        shown = "a tab" if dialect.delimiter == "\t" else f"`{dialect.delimiter}`"
        detected.append(f"{shown} as the delimiter")
    if not detected:
        return None
    return f"detected {' and '.join(detected)}; --encoding and --delimiter select others"


def _sample(lines, ending, delimiter) -> Iterator[list[str]]:
    some = itertools.islice(lines, 2 * _SAMPLE_ROWS)
    if not has_quotes(ending, delimiter):
        return (line.rstrip("\r\n").split(delimiter) for line in some)
    return itertools.islice(_lenient(csv.reader(some, delimiter=delimiter)), _SAMPLE_ROWS)


def _lenient(rows):
    """Yields rows up to the first that is broken."""
    try:
        yield from rows
    except csv.Error:
        return
