"""JSON and YAML of others, read within limits.

A file may be of any size, and a name may stand for a pipe that never ends; the limits are checked
before any work is done. Code that reads a whole file
uses this module; code that reads a file piece by piece checks its own limits.
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from data_pipeline.errors import InputError, Mistake

#: Settings and descriptions: `run.json`, `dataset_info.json`, a configuration.
MAX_JSON_BYTES = 16 * 2**20
#: A configuration is short; a larger file is not a configuration.
MAX_YAML_BYTES = 2**20
#: Vocabularies; released ones have one or two million bytes.
MAX_VOCABULARY_BYTES = 64 * 2**20
#: Files of examples that are read at once, such as SQuAD's, which has 42 million bytes.
MAX_DATA_BYTES = 512 * 2**20

#: Key of a record for the SHA-256 of its other values, see `with_digest`.
_DIGEST = "content_sha256"

#: Integers in settings that have no limit of their own; more than any of them needs.
MAX_INTEGER = 2**31 - 1
#: Seeds, and counts of bytes and records.
MAX_LONG_INTEGER = 2**63 - 1
#: Bytes of a text that a graph reads per position of a sequence; hardly any text has so few tokens.
BYTES_PER_POSITION = 32
#: Times as many bytes are read of a text that may take several windows.
LONG_TEXT_FACTOR = 16


def check_regular_file(path: str | Path) -> None:
    """Raises InputError if a path is a pipe, a device or a socket, which may never end.

    A missing file and a folder raise no error here; opening the path does.
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


def read_limited(path: str | Path, max_bytes: int = MAX_JSON_BYTES) -> bytes:
    """Reads a whole file.

    Raises:
        InputError: If it is not a regular file, or has more than `max_bytes` bytes.
        OSError: If it cannot be opened or read.
    """
    check_regular_file(path)  # opening a pipe would wait for its other end
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > max_bytes else file.read(max_bytes + 1)
    if max(len(content), size) > max_bytes:
        raise InputError(
            f"`{path}` is too large: it must have at most {max_bytes:,} bytes. "
            f"Received: {max(len(content), size):,} bytes."
        )
    return content


@contextlib.contextmanager
def reading_json(
    path: str | Path,
    advice: str = "",
    max_bytes: int = MAX_JSON_BYTES,
    kind: type = dict,
    strict: bool = True,
) -> Iterator[Any]:
    """Yields the content of a JSON file; errors of the block mean that the content is wrong.

    Args:
        path: The file.
        advice: str. What to do if it is damaged, a sentence.
        max_bytes: int. Most bytes that it may have.
        kind: type. What it must contain: dict, list, or object for any value.
        strict: bool. Whether a text with control characters is an error, as JSON says.

    Raises:
        InputError: If the file cannot be read, is not JSON of this kind, repeats a key, or has
            other values than its digest says, or if the block raises what a missing key or a value
            of another type causes.

    Example:
        with reading_json(path, "Remove it.") as values:
            step = int(values["step"])
    """
    advice = f" {advice}" if advice else ""
    try:
        content = read_limited(path, max_bytes)
        try:
            values = parse_json(content, strict=strict, object_pairs_hook=unique)
        except ValueError as error:
            raise InputError(f"`{path}` is damaged or not JSON: {error}.{advice}") from error
        if not isinstance(values, kind):
            wanted = "an object" if kind is dict else "a list"
            raise TypeError(f"it must contain {wanted}. Received: {type(values).__name__}")
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

    So a value that changed by itself is an error. Without a digest, any values are read.
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
    """Parses JSON as `json.loads` does, with its options.

    ValueError if it is not valid, or nested more deeply than Python can read.
    """
    try:
        return json.loads(content, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


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


class _Loader(yaml.SafeLoader):
    """Reads what settings need: no aliases, which may refer to what contains them, and no tags."""

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            problem = "YAML aliases (`*`) and tags (`!`) are not allowed"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node, deep=False):
        """Refuses keys that are no names, or are given twice: YAML silently takes the last."""
        names = set()
        for key, _ in node.value:
            problem = None
            if key.tag != self.DEFAULT_SCALAR_TAG:
                problem = f"each key must be a name. Received: {str(key.value)[:60]}"
            elif key.value in names:
                problem = f"`{key.value}` is given twice"
            if problem:
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Reads a file of settings, YAML or JSON.

    Raises:
        InputError: If it does not exist, is too large, is not valid YAML, or not a mapping.
    """
    if not Path(path).is_file():
        raise InputError(f"`{path}` does not exist, or is not a file.")
    values = parse_yaml(read_limited(path, MAX_YAML_BYTES), f"`{path}`")
    if not isinstance(values, dict):
        raise InputError(
            f"`{path}` must contain keys and values. Received: {values!r:.60}.", Mistake.NOT_YAML
        )
    return values


def parse_yaml(content: str | bytes, name: str) -> Any:
    """Returns the value of YAML without aliases and tags, in which each key is a name.

    Raises:
        InputError: If it is not valid; the message begins with `name`.
    """
    try:
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        return _Loader(text).get_single_data()
    except RecursionError:
        reason = "it is nested too deeply"
    except yaml.MarkedYAMLError as error:
        reason = f"line {error.problem_mark.line + 1}: {error.problem}"
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # such as a date without a month
        reason = str(error).split("\n")[0]
    raise InputError(f"{name} is not valid YAML: {reason}.", Mistake.NOT_YAML)
