"""Reads the cells of a row: a text, or a label of one of several kinds.

A cell that cannot be used is a CellError, whose text continues "line 7 ...".
"""

import abc
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from albert_keras.tasks.examples import text_problem
from data_pipeline.settings import did_you_mean

_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")


#: A list or dictionary as Python and JSON write it, or an array as NumPy does.
_NUMBER = r"-?[\d.]+(?:e[-+]?\d+)?"
_STRUCTURE = re.compile(
    r"""\[\s*\]|\[\s*(?P<quote>['"]).*(?P=quote)\s*\]|\{\s*['"].*:.*\}|array\(\[.*\].*\)|"""
    rf"\[\s*{_NUMBER}(?:[\s,]+{_NUMBER})*\s*\]",
    re.DOTALL,
)


class CellError(ValueError):
    """Why a cell cannot be used."""


class Label(abc.ABC):
    """How the cells of the columns of a label become the label of an example."""

    @abc.abstractmethod
    def read(self, values: list[Any], columns: Sequence[str | int]) -> Any:
        """Returns the label in the cells of `columns`; raises CellError if there is none."""


class ClassLabel(Label):
    """The name of a class, without surrounding white space; `known` are all that are allowed."""

    def __init__(self, known: Sequence[str] | None = None):
        self._known = known

    def read(self, values, columns):
        [value] = values
        if isinstance(value, (bool, int)):
            value = json.dumps(value)
        if not isinstance(value, str) or not value.strip():
            raise CellError(f"must have a name as label. Received: {value!r}.")
        name = value.strip()
        check_plain(name, "one name as label")
        if self._known is not None:
            _check_known(name, self._known)
        return name


#: The name of any class.
ANY_CLASS = ClassLabel()


class ScoreLabel(Label):
    """A number, or a tuple of the numbers of several columns."""

    def read(self, values, columns):
        numbers = [_number(value) for value in values]
        for number, value, column in zip(numbers, values, columns, strict=True):
            if number is None:
                raise CellError(f"must have a number in `{column}`. Received: {value!r}.")
        return numbers[0] if len(numbers) == 1 else tuple(numbers)


class LabelColumns(Label):
    """Labels with a column each, which contains 1, true or yes if the label applies, else 0, false
    or no: the `names` of the labels that apply, in their order."""

    def __init__(self, names: Sequence[str]):
        self._names = names

    def read(self, values, columns):
        found = [_applies(*cell) for cell in zip(values, columns, strict=True)]
        return tuple(name for name, applies in zip(self._names, found, strict=True) if applies)


class LabelList(Label):
    """Names in one cell between separators, or in a list of a .jsonl: each once, sorted.

    An empty cell has no label. `known` are all names that are allowed.
    """

    def __init__(self, separator: str, known: Sequence[str] | None = None):
        self._separator, self._known = separator, known

    def read(self, values, columns):
        [value] = values
        if isinstance(value, str):
            check_plain(value, f"names between `{self._separator}` as label")
            value = value.split(self._separator)
        if value is None:
            value = []
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise CellError(
                f"must have names between `{self._separator}`, or a list of names, as label. "
                f"Received: {value!r}."
            )
        names = sorted({name.strip() for name in value} - {""})
        if self._known is not None:
            for name in names:
                _check_known(name, self._known)
        return tuple(names)


def check_plain(value: str, what: str) -> None:
    """Raises CellError for a list, a dictionary or an array that was written as text."""
    if _STRUCTURE.fullmatch(value.strip()):
        raise CellError(
            f"must have {what}. Received a list or another structure written as text: "
            f"{value[:60]!r}. Write it as .jsonl, or its parts in columns of their own"
        )


def text_of(value: Any, column: str | int, may_be_blank: bool = False) -> str:
    """Returns a text; raises CellError if a model cannot read it, see `text_problem`."""
    problem = text_problem(value, may_be_blank)
    if problem is not None:
        raise CellError(f"`{column}` {problem}")
    check_plain(value, f"a text as `{column}`")
    return value


def _applies(value, column):
    """Returns whether a label applies."""
    text = str(value).strip().lower()
    if text not in _YES + _NO:
        raise CellError(
            f"must have 0 or 1 (or false and true, no and yes) in `{column}`, one of several "
            f"--label columns. Received: {value!r}. Columns of numbers require --task regression."
        )
    return text in _YES


def _number(value):
    """Returns a finite number, or None."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _check_known(name, known):
    if name not in known:
        raise CellError(f"has an unknown label, `{name}`{did_you_mean(name, known)}")
