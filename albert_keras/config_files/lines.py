"""Reads a YAML or JSON file together with the line of each key."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from data_pipeline.errors import InputError
from data_pipeline.limits import NotYaml, parse_yaml, read_limited

#: A configuration is short; a larger file is not a configuration.
_MAX_BYTES = 1 << 20
_STRING = "tag:yaml.org,2002:str"

Keys = tuple[str, ...]


class ReadFile(NamedTuple):
    """The content of a file."""

    values: dict[str, Any]
    lines: dict[Keys, int]  # the line of each key, counted from 1

    def line_of(self, path: Keys) -> int:
        """Returns the line of a key, or of the innermost section around it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_with_lines(path: Path) -> ReadFile:
    """Reads a file of settings.

    Raises:
        InputError: If it does not exist, is too large or not valid YAML, has aliases, is not a
            mapping, or gives a key twice, of which YAML silently takes the last value.
    """
    if not path.is_file():
        raise InputError(f"`{path}` does not exist, or is not a file.")
    lines: dict[Keys, int] = {}
    try:
        root, values = parse_yaml(read_limited(path, _MAX_BYTES))
        if not isinstance(values, dict):
            raise NotYaml(1, f"must contain keys and values. Received: {values!r:.60}.")
        _collect(root, (), lines)
    except NotYaml as error:
        raise InputError(f"Line {error.line} of `{path}` {error}") from error
    return ReadFile(values, lines)


def _collect(node, path, lines):
    if isinstance(node, yaml.MappingNode):
        seen: dict[Keys, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag != _STRING:
                received = str(key.value)[:60]
                raise NotYaml(line, f"must have names as keys. Received: {received}.")
            inner = (*path, str(key.value))
            if inner in seen:
                raise NotYaml(
                    line,
                    f"must not give `{'.'.join(inner)}` again, which is in line {seen[inner]}. "
                    "Remove one of them.",
                )
            seen[inner] = lines[inner] = line
            _collect(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            inner = (*path, str(number))
            lines[inner] = item.start_mark.line + 1
            _collect(item, inner, lines)
