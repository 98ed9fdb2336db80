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


class Repeated(NamedTuple):
    """A key that a mapping has twice; YAML silently takes the last value."""

    path: Keys
    lines: tuple[int, int]  # where it is given, counted from 1


class ReadFile(NamedTuple):
    """The content of a file."""

    values: dict[str, Any]
    lines: dict[Keys, int]  # the line of each key, counted from 1
    repeated: list[Repeated]

    def line_of(self, path: Keys) -> int:
        """Returns the line of a key, or of the innermost section around it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_with_lines(path: Path) -> ReadFile:
    """Reads a file of settings.

    Raises:
        NotYaml: If it is not valid YAML, has anchors, or is not a mapping.
        InputError: If it does not exist or is too large.
    """
    if not path.is_file():
        raise InputError(f"`{path}` does not exist, or is not a file.")
    root, values = parse_yaml(read_limited(path, _MAX_BYTES))
    if not isinstance(values, dict):
        raise NotYaml(1, f"must contain keys and values. Received: {values!r:.60}.")
    lines: dict[Keys, int] = {}
    repeated: list[Repeated] = []
    _collect(root, (), lines, repeated)
    return ReadFile(values, lines, repeated)


def _collect(node, path, lines, repeated):
    if isinstance(node, yaml.MappingNode):
        seen: dict[Keys, int] = {}
        for key, value in node.value:
            if key.tag != _STRING:
                raise NotYaml(
                    key.start_mark.line + 1,
                    f"must have names as keys. Received: {str(key.value)[:60]}.",
                )
            inner, line = (*path, str(key.value)), key.start_mark.line + 1
            if inner in seen:
                repeated.append(Repeated(inner, (seen[inner], line)))
            seen[inner] = lines[inner] = line
            _collect(value, inner, lines, repeated)
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            inner = (*path, str(number))
            lines[inner] = item.start_mark.line + 1
            _collect(item, inner, lines, repeated)
