"""Reads a YAML or JSON file together with the line of each key."""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DEPTH, read_limited
from data_pipeline.mistakes import Mistake

#: A configuration is short; a larger file is not a configuration.
_MAX_BYTES = 1 << 20

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


class NotYaml(InputError):
    """The file is not valid YAML, or is not used as such; `line` is counted from 1."""

    def __init__(self, line: int, message: str):
        self.line = line
        super().__init__(message, Mistake.NOT_YAML)


def read_with_lines(path: Path) -> ReadFile:
    """Reads a file of settings.

    Raises:
        NotYaml: If it is not valid YAML, has anchors, or is not a mapping.
        InputError: If it does not exist or is too large.
    """
    if not path.is_file():
        raise InputError(f"`{path}` does not exist, or is not a file.")
    root, values = parse(read_limited(path, _MAX_BYTES))
    if not isinstance(values, dict):
        raise NotYaml(1, f"must contain keys and values. Received: {values!r:.60}.")
    lines: dict[Keys, int] = {}
    repeated: list[Repeated] = []
    _collect(root, (), lines, repeated)
    return ReadFile(values, lines, repeated)


def parse(text: str | bytes) -> tuple[yaml.Node | None, Any]:
    """Parses YAML without anchors and without deep nesting, which settings do not need.

    Anchors can make a small file huge. Deeply nested files take hours to parse, whereas reading
    their tokens ends at the limit.

    Returns:
        tuple of the root node and its value.

    Raises:
        NotYaml: If it is not valid.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        _check_tokens(text)
        return yaml.compose(text, yaml.SafeLoader), yaml.safe_load(text)
    except NotYaml:
        raise
    except UnicodeDecodeError as error:
        raise NotYaml(1, f"must be UTF-8: {error.reason} at byte {error.start}.") from error
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        # Values that do not fit their tag, such as `!!bool 7`, are errors of Python.
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n")[0]
        raise NotYaml(mark.line + 1 if mark else 1, f"is not valid YAML: {problem}.") from error


def _check_tokens(text):
    depth = 0
    for token in yaml.scan(text):
        line, name = token.start_mark.line + 1, type(token).__name__
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
            raise NotYaml(line, "must not contain YAML anchors (`&`, `*`).")
        depth += name.endswith(("SequenceStartToken", "MappingStartToken"))
        depth -= name.endswith(("SequenceEndToken", "MappingEndToken", "BlockEndToken"))
        if depth > MAX_DEPTH:
            raise NotYaml(line, f"must not be nested more deeply than {MAX_DEPTH} levels.")


def _collect(node, path, lines, repeated):
    if isinstance(node, yaml.MappingNode):
        seen: dict[Keys, int] = {}
        for key, value in node.value:
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
