"""Configuration: frozen pydantic models that tell all their problems at once.

Every configuration of both packages derives from `Settings`. It stands here because
`data_pipeline` is the lower of the two packages.
"""

import difflib
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from data_pipeline.errors import InputError


class Problem(NamedTuple):
    """One thing wrong with a configuration.

    Attributes:
        path: tuple of str. Where: keys from the outermost in.
        says: str. What: the rule, and what was received.
    """

    path: tuple[str, ...]
    says: str

    def __str__(self):
        return f"`{'.'.join(self.path)}` {self.says}" if self.path else self.says


class Rule(NamedTuple):
    """A condition between fields, checked whenever the fields it names are sound themselves.

    Attributes:
        fields: tuple of str. The fields it speaks of; the first is the one blamed.
        holds: callable. Takes the values of `fields` in this order, returns bool.
        says: str. Completes "`first_field` ...", for example "should be a multiple of ...".
    """

    fields: tuple[str, ...]
    holds: Callable[..., bool]
    says: str


class SettingsError(InputError):
    """A configuration with one or more problems, all of them in `problems`."""

    def __init__(self, name, problems):
        self.name = name
        self.problems = tuple(problems)
        count = f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        listing = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{count} in {name}:\n{listing}")


class Settings(BaseModel):
    """Base of all configurations: frozen, no unknown keys, every problem reported in one error.

    Subclasses state conditions between fields as `rules`.

    Raises:
        SettingsError: On construction, with all problems; a misspelt key comes with the nearest
            known one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    rules: ClassVar[tuple[Rule, ...]] = ()

    def __init__(self, /, **values: Any):
        problems = []
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = [problem for item in error.errors() for problem in _explain(item, self)]
        known = values if problems else dict(self)
        problems += _broken_rules(type(self), known, {problem.path[0] for problem in problems})
        if problems:
            raise SettingsError(type(self).__name__, problems)

    def replace(self, **changes):
        """Returns a checked copy with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)


def _explain(item, settings):
    """Turns one pydantic error into problems in our words; nested settings bring their own."""
    path = tuple(str(part) for part in item["loc"])
    nested = item.get("ctx", {}).get("error")
    if isinstance(nested, SettingsError):
        return [Problem(path + problem.path, problem.says) for problem in nested.problems]
    if item["type"] == "extra_forbidden":
        return [Problem(path, "is not a known key" + did_you_mean(path[-1], _fields(settings)))]
    if item["type"] == "missing":
        return [Problem(path, "is required.")]
    says = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
    end = "" if says.endswith((".", "?")) else "."
    return [Problem(path, f"{says}{end} Received: {item['input']!r}.")]


def _broken_rules(settings, values, blamed):
    known = {
        name: values.get(name, field.get_default(call_default_factory=True))
        for name, field in settings.model_fields.items()
        if name not in blamed
    }
    for rule in settings.rules:
        if all(name in known for name in rule.fields):
            received = {name: known[name] for name in rule.fields}
            if not rule.holds(*received.values()):
                listing = ", ".join(f"{name}={value!r}" for name, value in received.items())
                yield Problem(rule.fields[:1], f"{rule.says}. Received: {listing}.")


def _fields(settings):
    return list(type(settings).model_fields)


def did_you_mean(word, known):
    """Completes an error about an unknown word: the nearest known one, or the list of all.

    Args:
        word: str. What was received.
        known: iterable of str. What could have been meant.

    Returns:
        str. ", did you mean `...`?" or ", known are: ...".
    """
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f", did you mean `{near[0]}`?" if near else f", known are: {', '.join(known)}."
