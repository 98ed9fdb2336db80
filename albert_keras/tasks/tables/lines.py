"""The text of a file → its lines as Rows."""

import io
import re
from pathlib import PurePath

from albert_keras.tasks.tables.rows import Row
from data_pipeline.errors import InputError
from data_pipeline.text import storage

USUAL_ENCODING = "utf-8"
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that `surrogateescape` could not decode


def line_rows(path: str | PurePath, encoding: str | None = None) -> list[Row]:
    """Returns the lines of a file as Rows, whose `fields` are the text without its line break.

    Args:
        path: The file. A line ends with LF or CRLF.
        encoding: Name of its encoding; None is UTF-8, with or without a byte order mark.

    Returns:
        A list of Row. A line with bytes that are not in the encoding has a `problem`.

    Raises:
        InputError: If the file cannot be read, or is in an encoding whose characters have several
            bytes, such as UTF-16, and has other bytes.
    """
    name = encoding or USUAL_ENCODING
    with storage.open_to_read(path) as file:
        data = file.read()
    try:
        text = data.decode(name, "surrogateescape").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"`{path}` line {line} must be {name.upper()}. {_byte(error.start, data[error.start])} "
            "is not. `encoding` names another one."
        ) from None
    lines = enumerate(io.StringIO(text, newline="\n"), start=1)  # only LF ends a line
    return [_row(number, line, name) for number, line in lines]


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding; raises ValueError if Python has no such text encoding."""
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise ValueError(
            "must be the name of an encoding, such as utf-8, utf-16, windows-1252 or latin-1"
        ) from error
    return name


def _row(number, line, encoding):
    row = Row(number, line.removesuffix("\n").removesuffix("\r"), line)
    if (found := _ESCAPED.search(line)) is None:
        return row
    position = len(line[: found.start()].encode(encoding, "surrogateescape"))
    byte = _byte(position, ord(found[0]) - 0xDC00)
    return row._replace(
        problem=f"must be {encoding.upper()}. {byte} is not. `encoding` names another one."
    )


def _byte(position, value):
    return f"Its byte {position} (0x{value:02x})"
