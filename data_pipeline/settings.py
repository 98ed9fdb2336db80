"""Base of all configurations: frozen pydantic models that report every problem in one error.

It belongs to the lower of the two packages so that both can use it.
"""

import difflib
import os
import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import MAX_INTEGER

#: Characters of a wrong value in a message.
_MAX_SHOWN = 500
#: Known words in a message.
_MOST_NAMED = 40
#: How the message about an unknown key begins.
UNKNOWN_KEY = "is not a known key"


class Problem(NamedTuple):
    """One problem of a configuration.

    Attributes:
        path: tuple of str. Keys that lead to the value, the outermost first.
        message: str. The rule, and what was received.
    """

    path: tuple[str, ...]
    message: str

    def __str__(self):
        return f"`{'.'.join(self.path)}` {self.message}" if self.path else self.message


class Rule(NamedTuple):
    """A condition on several fields, checked if all fields are valid on their own.

    Attributes:
        fields: tuple of str. The fields involved; the error is reported for the first one.
        holds: callable. Takes the values of `fields` in this order and returns a bool.
        message: str. Completes "`first_field` ...", for example "must be a multiple of ...".
    """

    fields: tuple[str, ...]
    holds: Callable[..., bool]
    message: str


class SettingsError(InputError):
    """A configuration has one or more problems; `problems` lists them all."""

    def __init__(self, name, problems):
        self.name = name
        self.problems = tuple(problems)
        count = f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        listing = "\n".join(f"  {problem}" for problem in self.problems)
        is_unknown = [problem.message.startswith(UNKNOWN_KEY) for problem in self.problems]
        mistakes = [Mistake.UNKNOWN_KEY if one else Mistake.INVALID_VALUE for one in is_unknown]
        super().__init__(f"{count} in {name}:\n{listing}", *mistakes)


class Settings(BaseModel):
    """Base of all configurations: frozen, without unknown keys.

    Subclasses state conditions on several fields as `rules`. Paths may be given as `pathlib.Path`;
    they are kept as str.

    Raises:
        SettingsError: On construction, with the problems of all fields; for an unknown key it names
            the nearest known one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    rules: ClassVar[tuple[Rule, ...]] = ()

    def __init__(self, /, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = [problem for item in error.errors() for problem in _explain(item, self)]
            raise SettingsError(type(self).__name__, problems) from None

    @field_validator("*", mode="wrap")
    @classmethod
    def _check_field(cls, value, convert, info):
        if isinstance(value, os.PathLike):
            value = os.fspath(value)  # files contain strings
        converted = convert(value)
        if isinstance(value, bool) and type(converted) in (int, float):
            raise ValueError("must be a number")
        limits = cls.model_fields[info.field_name].metadata
        has_limit = any(hasattr(limit, "le") or hasattr(limit, "lt") for limit in limits)
        if type(converted) is int and abs(converted) > MAX_INTEGER and not has_limit:
            raise ValueError(f"must be at most {MAX_INTEGER:,}")
        return converted

    @model_validator(mode="after")
    def _check_rules(self):
        problems = []
        for rule in self.rules:
            received = {name: getattr(self, name) for name in rule.fields}
            if not rule.holds(*received.values()):
                listing = ", ".join(f"{name}={value!r}" for name, value in received.items())
                message = f"{rule.message}. Received: {listing}."
                problems.append(Problem(rule.fields[:1], message))
        if problems:
            raise SettingsError(type(self).__name__, problems)
        return self

    def replace(self, **changes):
        """Returns a checked copy with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)


class Option(NamedTuple):
    """How a field of a configuration is given as an option of a command.

    Attributes:
        path: tuple of str. Keys that lead to the value, such as ("training", "steps").
        field: pydantic FieldInfo. Contains description, annotation and default.
        key: str or None. For a field that is a dict: the key that the option sets.
        flag: str or None. Name on the command line; None derives it from the keyword.
        metavar: str or None. Placeholder for the value in the help.
        is_path: bool. Whether the value is the path of a file or folder.
        default_text: str or None. Phrase shown instead of the default, such as "by model size".
    """

    path: tuple[str, ...]
    field: FieldInfo
    key: str | None = None
    flag: str | None = None
    metavar: str | None = None
    is_path: bool = False
    default_text: str | None = None


def setting(default: Any, description: str, **constraints: Any) -> Any:
    """Declares a field with a description; `constraints` are passed to `pydantic.Field`."""
    return Field(default, description=description, **constraints)


def option(default: Any, description: str, *, keyword: str | None = None, **how: Any) -> Any:
    """Declares a field that is also an option of a command, and a keyword in Python.

    Args:
        default: Default of the field; `...` if it is required.
        description: str. Sentence for the help of the command.
        keyword: str or None. Keyword in Python; None uses the name of the field.
        **how: `key`, `flag`, `metavar`, `is_path` and `default_text` of `Option`; anything else,
            such as `ge`, is passed to `pydantic.Field`.
    """
    own = {name: how.pop(name) for name in Option._fields if name in how}
    extra = {"option": own | {"keyword": keyword}}
    return setting(default, description, json_schema_extra=extra, **how)


def options_of(settings, path=()):
    """Collects the options of a configuration and its sections.

    Args:
        settings: type. Subclass of Settings.
        path: tuple of str. Keys that lead to this section.

    Returns:
        dict of keyword (str) -> Option. Fields of a subclass come before inherited ones.
    """
    options = {}
    inherited = {name for base in settings.__bases__ for name in getattr(base, "model_fields", ())}
    for name in sorted(settings.model_fields, key=inherited.__contains__):
        field = settings.model_fields[name]
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            options |= options_of(field.annotation, (*path, name))
        elif "option" in (field.json_schema_extra or {}):
            how = dict(field.json_schema_extra["option"])
            keyword = how.pop("keyword") or name
            keys = (name, how["key"]) if "key" in how else (name,)
            options[keyword] = Option((*path, *keys), field, **how)
    return options


def _explain(item, settings):
    """Converts one pydantic error to problems; nested settings report their own."""
    path = tuple(str(part) for part in item["loc"])
    nested = item.get("ctx", {}).get("error")
    if isinstance(nested, SettingsError):
        return [Problem(path + problem.path, problem.message) for problem in nested.problems]
    if item["type"] == "extra_forbidden":
        known = type(settings).model_fields
        return [Problem(path, f"{UNKNOWN_KEY}{did_you_mean(path[-1], known)}")]
    if item["type"] == "missing":
        return [Problem(path, "is required.")]
    message = item["msg"].removeprefix("Value error, ")
    message = re.sub(r"^[A-Z]\w+ should ", "must ", message)  # "Input should", "String should"
    end = "" if message.endswith((".", "?")) else "."
    received = repr(item["input"])
    if len(received) > _MAX_SHOWN:
        received = f"{received[:_MAX_SHOWN]}..."
    return [Problem(path, f"{message}{end} Received: {received}.")]


def did_you_mean(word, known):
    """Completes an error about an unknown word with the nearest known one, or with all of them.

    Args:
        word: str. What was received.
        known: iterable of str. The known words.

    Returns:
        str. ". Did you mean `...`?" or ". Expected one of: ...". Characters that are not seen, such
        as U+200B, are shown with escapes.
    """
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    listing = ", ".join(known[:_MOST_NAMED]) + (", ..." if len(known) > _MOST_NAMED else "")
    return f". Did you mean `{repr(near[0])[1:-1]}`?" if near else f". Expected one of: {listing}."
