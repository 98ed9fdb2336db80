"""The dialect of a table: its encoding and its delimiter, as given or detected."""

import codecs
import re
from typing import NamedTuple

from data_pipeline.errors import InputError

#: Delimiter of each ending; an object per line has none.
USUAL_DELIMITERS = {".tsv": "\t", ".csv": ",", ".jsonl": None}
USUAL_ENCODING = "utf-8"
_NAMES = {"tab": "\t", "\\t": "\t"}
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
    """Returns the text of a table and its encoding, which is detected if it is None.

    In the text, bytes that do not suit the encoding are surrogate escapes, see `broken_byte`.

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


def broken_byte(raw: str, encoding: str) -> str | None:
    """Describes the first byte of a row that did not suit the encoding; None if all do."""
    found = _ESCAPED.search(raw)
    if found is None:
        return None
    position = len(raw[: found.start()].encode(encoding, "surrogateescape"))
    byte = f"Its byte {position} (0x{ord(found[0]) - 0xDC00:02x})"
    return f"must be {encoding.upper()}. {byte} is not. --encoding selects another encoding."


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
