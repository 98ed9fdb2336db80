"""Bounds of what is read from files of others, checked before any work is done with it.

A file may be of any size, a JSON of 200 KB may be nested 200,000 times, and a name may stand for a
pipe that never ends. Code that reads a whole file uses this module; code that reads a file piece by
piece checks its own bounds.
"""

import array
import errno
import itertools
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from data_pipeline.errors import InputError

#: Settings and descriptions: `run.json`, `dataset_info.json`, a configuration.
MAX_JSON_BYTES = 16 * 2**20
#: Vocabularies; released ones have one or two million bytes.
MAX_VOCABULARY_BYTES = 64 * 2**20
#: Files of examples that are read at once, such as SQuAD's, which has 42 million bytes.
MAX_DATA_BYTES = 512 * 2**20
#: Longest line of examples. A line takes about 25 times its size in memory.
MAX_LINE_BYTES = 1 << 24
#: Levels of a JSON or YAML document. Documents of the project have fewer than ten.
MAX_DEPTH = 64

#: Integers in settings that have no limit of their own; more than any of them needs.
MAX_INTEGER = 2**31 - 1
#: Seeds, and counts of bytes and records.
MAX_LONG_INTEGER = 2**63 - 1
#: Tokens of a sequence; published models have 512.
MAX_SEQUENCE_LENGTH = 2**16

# A string up to its end, or up to the end of the JSON if it has none.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
# As signed bytes, an opening bracket is 1 and a closing one -1.
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def check_regular_file(path: str | Path) -> None:
    """Raises InputError if a path is a pipe, a device or a socket, which may never end.

    A missing file and a folder raise no error here; opening the path does.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise _not_regular(path)


def read_limited(path: str | Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Reads a whole file.

    Raises:
        InputError: If it is not a regular file, or has more than `max_bytes` bytes.
        OSError: If it cannot be opened or read.
    """
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(path)
        content = b"" if status.st_size > max_bytes else file.read(max_bytes + 1)
        if max(len(content), status.st_size) > max_bytes:
            raise InputError(
                f"`{path}` is too large: it must have at most {max_bytes:,} bytes. "
                f"Received: {max(len(content), status.st_size):,} bytes."
            )
    return content


def bounded_lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yields the lines of an open file, including their ends.

    InputError, which begins with the `name` of the file, as soon as a line is too long, see
    `check_line_length`.
    """
    number = 1
    while line := file.readline(MAX_LINE_BYTES + 1):
        check_line_length(len(line), f"{name} line {number}")
        yield line
        number += 1


def check_line_length(num_bytes: int, line: str) -> None:
    """Raises InputError if a line has more than `MAX_LINE_BYTES`; `line` names it."""
    if num_bytes > MAX_LINE_BYTES:
        raise InputError(
            f"{line} must have at most {MAX_LINE_BYTES:,} bytes. Received: more. Check that the "
            "texts of the file are separated by line breaks, or shorten them."
        )


def parse_json(content: bytes | str, **options: Callable | bool) -> Any:
    """Parses JSON as `json.loads` does, with its options.

    ValueError if it is not valid, or nested more deeply than `MAX_DEPTH` levels.
    """
    if isinstance(content, bytes):
        content = content.decode(json.detect_encoding(content), "surrogatepass")
    # Before it is parsed: at the limit of recursion, whatever Python runs fails, destructors, too.
    if is_too_deep(content, MAX_DEPTH):
        raise ValueError(f"it is nested more deeply than {MAX_DEPTH} levels")
    return json.loads(content, **options)


def is_too_deep(content: bytes | str, depth: int) -> bool:
    """Returns whether lists and objects in JSON are nested deeper than `depth`.

    The JSON is not parsed, and brackets after a mistake in it are counted as well.
    """
    opening = ("[", "{") if isinstance(content, str) else (b"[", b"{")
    if sum(map(content.count, opening)) <= depth:  # of a line of examples nothing else is done
        return False
    if isinstance(content, str):
        content = content.encode(errors="surrogatepass")
    steps = array.array("b", _STRING.sub(b"", content).translate(_STEPS, _NO_BRACKETS))
    return max(itertools.accumulate(steps), default=0) > depth


def check_memory(num_bytes: int, what: str) -> None:
    """Raises InputError if the memory of this machine cannot hold that many bytes.

    `what` is the subject of the message, such as "The model".
    """
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if num_bytes > available:
        raise InputError(
            f"{what} must fit into the memory of this machine, {available / 1e9:,.1f} GB. "
            f"Received: {num_bytes / 1e9:,.1f} GB."
        )


def _not_regular(path):
    return InputError(
        f"`{path}` must be a regular file. Received: a pipe, a device or a socket. "
        "Write its content to a file, and pass that file."
    )
