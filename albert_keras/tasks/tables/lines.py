"""The text of a file, in whatever encoding → its lines as Rows."""

import io
import logging
from collections.abc import Sequence
from pathlib import PurePath

from albert_keras.tasks.tables.rows import Row
from data_pipeline.errors import InputError
from data_pipeline.file_kinds import ESCAPED, HTML, WIDE, detect_encoding
from data_pipeline.limits import bounded_lines
from data_pipeline.text import storage

USUAL_ENCODING = "utf-8"

logger = logging.getLogger(__name__)


def line_rows(path: str | PurePath, encoding: str | None = None) -> list[Row]:
    """Returns the lines of a file as Rows, whose `fields` are the text without its line break.

    For `encoding` and errors see `read_raw_table`; a line that is not decoded has a `problem`.
    """
    lines, found = read_lines(path, encoding)
    log_detected(path, None if encoding else found)
    return [
        # A byte order mark is inside where files were joined.
        decodable(Row(number, line.removeprefix("\ufeff").rstrip("\r\n"), line), found, encoding)
        for number, line in enumerate(lines, start=1)
    ]


def checked_encoding(name: str) -> str:
    """Returns the name of an encoding; raises ValueError if Python has no such text encoding."""
    try:
        "".encode(name)
    except (LookupError, ValueError) as error:
        raise ValueError(
            "must be the name of an encoding, such as utf-8, utf-16, windows-1252 or latin-1"
        ) from error
    return name


def read_lines(path: str | PurePath, encoding: str | None) -> tuple[list[str], str]:
    """Returns the lines of a file, with their ends, and its encoding, detected if it is None.

    Bytes that do not suit it are surrogate escapes, see `decodable`; InputError if its characters
    have several bytes, as in UTF-16, so that no line can be read.
    """
    with storage.open_to_read(path, takes=(HTML, *WIDE)) as file:
        data = b"".join(bounded_lines(file, f"`{path}`"))
    encoding = encoding or detect_encoding(data)
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


def decodable(row: Row, encoding: str, given: str | None) -> Row:
    """Adds a problem to a row with a byte that did not suit the encoding."""
    found = ESCAPED.search(row.raw)
    if found is None:
        return row
    position = len(row.raw[: found.start()].encode(encoding, "surrogateescape"))
    byte = f"Its byte {position} (0x{ord(found[0]) - 0xDC00:02x})"
    advice = "" if given else " `encoding` selects another one."
    return row._replace(problem=f"must be {encoding.upper()}. {byte} is not.{advice}")


def log_detected(path: str | PurePath, encoding: str | None, others: Sequence[str] = ()) -> None:
    """Logs what was detected and is not usual: the encoding, and `others`, for people."""
    detected = list(others)
    if encoding not in (None, USUAL_ENCODING):
        detected.insert(0, f"the encoding {encoding} (`encoding` selects another)")
    if detected:
        logger.info("%s: detected %s.", path, " and ".join(detected))
