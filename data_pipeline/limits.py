"""JSON, YAML and lines of others, read within limits.

A file may be of any size, and a name may stand for a pipe that never ends; the limits are checked
before any work is done. Code that reads a whole file
uses this module; code that reads a file piece by piece checks its own limits.
"""

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from data_pipeline.errors import InputError, Mistake
from data_pipeline.file_kinds import HEAD_BYTES, WIDE, check_kind

#: Settings and descriptions: `run.json`, `dataset_info.json`, a configuration.
MAX_JSON_BYTES = 16 * 2**20
#: A configuration is short; a larger file is not a configuration.
MAX_YAML_BYTES = 2**20
#: Vocabularies; released ones have one or two million bytes.
MAX_VOCABULARY_BYTES = 64 * 2**20
#: Files of examples that are read at once, such as SQuAD's, which has 42 million bytes.
MAX_DATA_BYTES = 512 * 2**20
#: Columns of a table, whose names are compared with each other.
MAX_COLUMNS = 4096
#: Longest line of examples. A line takes about 25 times its size in memory.
MAX_LINE_BYTES = 1 << 24

#: Key of a record for the SHA-256 of its other values, see `with_digest`.
_DIGEST = "content_sha256"

#: Brackets of YAML that are open at once.
_MAX_LEVELS = 100
#: Tags of numbers in YAML, and the most digits of an integer that Python reads.
_NUMBERS, _MAX_DIGITS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"), 4300

#: Integers in settings that have no limit of their own; more than any of them needs.
MAX_INTEGER = 2**31 - 1
#: Seeds, and counts of bytes and records.
MAX_LONG_INTEGER = 2**63 - 1
#: Tokens of a sequence; published models have 512.
MAX_SEQUENCE_LENGTH = 2**16
#: Bytes of a text that a graph reads per position of a sequence; hardly any text has so few tokens.
BYTES_PER_POSITION = 32
#: Times as many bytes are read of a text that may take several windows.
LONG_TEXT_FACTOR = 16


def check_regular_file(path: str | Path, takes: tuple[str, ...] | None = None) -> None:
    """Raises InputError if a path is a pipe, a device or a socket, which may never end.

    So does a file of a known kind that is not one of those it `takes`, see `check_kind`. A missing
    file and a folder raise no error here; opening the path does.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(
            f"`{path}` must be a regular file. Received: a pipe, a device or a socket. "
            "Write its content to a file, and pass that file."
        )
    with contextlib.suppress(OSError), open(path, "rb") as file:
        check_kind(path, file.read(HEAD_BYTES), takes)


def read_limited(path: str | Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Reads a whole file.

    Raises:
        InputError: If it is not a regular file, is of another kind, see `check_kind`, or has more
            than `max_bytes` bytes.
        OSError: If it cannot be opened or read.
    """
    check_regular_file(path, WIDE)  # opening a pipe would wait for its other end
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > max_bytes else file.read(max_bytes + 1)
    if max(len(content), size) > max_bytes:
        raise InputError(
            f"`{path}` is too large: it must have at most {max_bytes:,} bytes. "
            f"Received: {max(len(content), size):,} bytes."
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


def check_columns(count: int, path: str | Path) -> None:
    """Raises InputError if a table has more than `MAX_COLUMNS` columns."""
    if count > MAX_COLUMNS:
        raise InputError(
            f"`{path}` must have at most {MAX_COLUMNS:,} columns. Received: {count:,}. Keep only "
            "the columns of texts and labels."
        )


def check_line_length(num_bytes: int, line: str) -> None:
    """Raises InputError if a line has more than `MAX_LINE_BYTES`; `line` names it."""
    if num_bytes > MAX_LINE_BYTES:
        raise InputError(
            f"{line} must have at most {MAX_LINE_BYTES:,} bytes. Received: more. Check that the "
            "texts of the file are separated by line breaks, or shorten them."
        )


@contextlib.contextmanager
def reading_json(
    path: str | Path,
    advice: str = "",
    max_bytes: int = MAX_JSON_BYTES,
    kind: type = dict,
    **options: Callable | bool,
) -> Iterator[Any]:
    """Yields the content of a JSON file; errors of the block mean that the content is wrong.

    Args:
        path: The file.
        advice: str. What to do if it is damaged, a sentence.
        max_bytes: int. Most bytes that it may have.
        kind: type. What it must contain: dict, or list.
        **options: Passed to `json.loads`.

    Raises:
        InputError: If the file cannot be read, is not JSON of this kind, repeats a key (which files
            of examples may), or has other values than
            its digest says, or if the block raises what a missing key or a value of another type
            causes.

    Example:
        with reading_json(path, "Remove it.") as values:
            step = int(values["step"])
    """
    advice = f" {advice}" if advice else ""
    try:
        content = read_limited(path, max_bytes)
        if max_bytes < MAX_DATA_BYTES:
            options.setdefault("object_pairs_hook", unique)
        try:
            values = parse_json(content, **options)
        except ValueError as error:
            raise InputError(f"`{path}` is damaged or not JSON: {error}.{advice}") from error
        if not isinstance(values, kind):
            wanted = "object" if kind is dict else kind.__name__
            raise TypeError(f"it must contain a JSON {wanted}. Received: {type(values).__name__}")
        digest = values.pop(_DIGEST, None) if isinstance(values, dict) else None
        if digest not in (None, _digest_of(values)):
            raise InputError(
                f"`{path}` is damaged or was edited: its values must have the SHA-256 {digest}. "
                f"Received: {_digest_of(values)}. To keep a change of your own, remove the line "
                f"`{_DIGEST}`.{advice}"
            )
        yield values
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror or error}.{advice}") from error
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"`{path}` is damaged: {reason}.{advice}") from error


def with_digest(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a record with the digest of its values, which reading it compares and removes.

    So a value that changed by itself is an error. Records of earlier versions have no digest.
    """
    return {_DIGEST: _digest_of(values)} | values


def _digest_of(values):
    plain = json.loads(json.dumps(values))  # with the keys that a file has
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_json(path: str | Path, advice: str = "") -> dict:
    """Reads a JSON object; its arguments and errors are those of `reading_json`."""
    with reading_json(path, advice) as values:
        return values


def parse_json(content: bytes | str, **options: Callable | bool) -> Any:
    """Parses JSON as `json.loads` does, with its options; integers of too many digits are str.

    ValueError if it is not valid, or nested more deeply than Python can read.
    """
    if isinstance(content, bytes):
        content = content.decode(json.detect_encoding(content), "surrogatepass")
    try:
        return json.loads(content, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python reads no more digits
        options.setdefault("parse_int", lambda text: text if len(text) > _MAX_DIGITS else int(text))
        return json.loads(content, **options)


def unique(pairs):
    """Returns the object of names and values; ValueError if a name is repeated."""
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"it has `{repeated}` more than once")
    return values


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


class NotYaml(InputError):
    """The file is not valid YAML, or is not used as such; `line` is counted from 1."""

    def __init__(self, line: int, message: str):
        self.line = line
        super().__init__(message, Mistake.NOT_YAML)


class _Loader(yaml.SafeLoader):
    """Reads YAML without aliases, which may refer to what contains them, and of few levels."""

    def fetch_more_tokens(self):
        if self.flow_level > _MAX_LEVELS:  # each bracket takes time that grows with its level
            raise NotYaml(self.line + 1, "is nested too deeply.")
        super().fetch_more_tokens()

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1
            raise NotYaml(line, "must not contain YAML aliases (`*`).")
        return super().compose_node(parent, index)

    def resolve(self, kind, value, implicit):
        """Reads 8:30 and 010, for YAML of the bases 60 and 8, and overlong numbers as text."""
        tag = super().resolve(kind, value, implicit)
        if tag in _NUMBERS and (re.match(r"[-+]?0\d|.*:", value) or len(value) > _MAX_DIGITS):
            return self.DEFAULT_SCALAR_TAG
        return tag

    def construct_mapping(self, node, deep=False):
        """Refuses keys that are no names, or are given twice: YAML silently takes the last."""
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:str":
                received = str(key.value)[:60]
                raise NotYaml(line, f"must have names as keys. Received: {received}.")
            if key.value in seen:
                where = f"which is in line {seen[key.value]}"
                raise NotYaml(
                    line, f"must not give `{key.value}` again, {where}. Remove one of them."
                )
            seen[key.value] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Reads a file of settings, YAML or JSON.

    Raises:
        InputError: If it does not exist, is too large, is not valid YAML, or not a mapping.
    """
    if not Path(path).is_file():
        raise InputError(f"`{path}` does not exist, or is not a file.")
    try:
        values = parse_yaml(read_limited(path, MAX_YAML_BYTES))
        if not isinstance(values, dict):
            raise NotYaml(1, f"must contain keys and values. Received: {values!r:.60}.")
    except NotYaml as error:
        raise InputError(f"Line {error.line} of `{path}` {error}", *error.mistakes) from error
    return values


def parse_yaml(text: str | bytes) -> Any:
    """Returns the value of YAML without aliases, in which each key of a mapping is a name.

    Raises:
        NotYaml: If it is not valid.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return _Loader(text).get_single_data()
    except NotYaml:
        raise
    except UnicodeDecodeError as error:
        raise NotYaml(1, f"must be UTF-8: {error.reason} at byte {error.start}.") from error
    except RecursionError:
        raise NotYaml(1, "is nested too deeply.") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        # Values that do not fit their tag, such as `!!bool 7`, are errors of Python.
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise NotYaml(mark.line + 1 if mark else 1, f"is not valid YAML: {problem}.") from error
