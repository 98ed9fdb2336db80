"""Parses YAML of others within bounds: settings, and the facts of model cards."""

from typing import Any

import yaml

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DEPTH
from data_pipeline.mistakes import Mistake


class NotYaml(InputError):
    """The file is not valid YAML, or is not used as such; `line` is counted from 1."""

    def __init__(self, line: int, message: str):
        self.line = line
        super().__init__(message, Mistake.NOT_YAML)


def parse_yaml(text: str | bytes) -> tuple[yaml.Node | None, Any]:
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
