"""Reads the cells of a row: a text, or a label of one of several kinds.

A cell that cannot be used is a RowError, whose text continues "line 7 ...".
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.rows import RowError
from data_pipeline.settings import did_you_mean

#: The largest number of float32, in which models learn.
_LARGEST = float(np.finfo(np.float32).max)
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")

#: How the cells of the columns of a label become the label of an example: from values and columns.
Label = Callable[[list[Any], Sequence[str | int]], Any]


def class_of(values: list[Any], columns: Sequence[str | int], known: Sequence[str] = ()) -> str:
    """Returns the name of a class, without white space around it; `known`, if any, are allowed."""
    name = _named(values[0])
    if not isinstance(name, str) or not name.strip():
        raise RowError(f"must have a name as label. Received: {values[0]!r:.80}.")
    return _checked_name(name.strip(), known)


def score_of(
    values: list[Any],
    columns: Sequence[str | int],
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> float | tuple[float, ...]:
    """Returns a number within limits, or a tuple of the numbers of several columns."""
    numbers = [_number(value) for value in values]
    for number, value, column in zip(numbers, values, columns, strict=True):
        if number is None or not limits[0] <= number <= limits[1]:
            rule = "" if limits[0] == -math.inf else f" from {limits[0]} to {limits[1]}"
            raise RowError(f"must have a number{rule} in `{column}`. Received: {value!r:.80}.")
    return numbers[0] if len(numbers) == 1 else tuple(numbers)


def marked_labels(
    values: list[Any], columns: Sequence[str | int], names: Sequence[str]
) -> tuple[str, ...]:
    """Returns the `names`, of a column each, of the labels that apply, in their order.

    A column contains 1, true or yes if its label applies, else 0, false or no.
    """
    found = [_applies(*cell) for cell in zip(values, columns, strict=True)]
    return tuple(name for name, applies in zip(names, found, strict=True) if applies)


def listed_labels(
    values: list[Any], columns: Sequence[str | int], separator: str, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """Returns names in one cell between separators, or in a list of a .jsonl: each once, sorted.

    An empty cell, or null in a .jsonl, has no label. No name is repeated: a list of zeros and ones
    has no names. `known`, if any, are all names that are allowed.
    """
    [value] = values
    names = value.split(separator) if isinstance(value, str) else value
    if names is None:
        names = []
    if isinstance(names, list):
        names = [_named(one) for one in names]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise RowError(
            f"must have names between `{separator}`, or a list of names, as label. "
            f"Received: {value!r:.80}."
        )
    counts = Counter(name.strip() for name in names if name.strip())
    for name, count in counts.items():
        if count > 1:
            raise RowError(
                f"has the label `{name}` more than once. Zeros and ones need a column each."
            )
    return tuple(_checked_name(name, known) for name in sorted(counts))


def text_of(value: Any, column: str | int, may_be_blank: bool = False) -> str:
    """Returns a text; raises RowError if a model cannot read it, see `text_problem`."""
    problem = text_problem(value, may_be_blank)
    if problem is not None:
        raise RowError(f"`{column}` {problem}")
    return value


def _applies(value, column):
    text = str(value).strip().lower()
    if text not in _YES + _NO:
        raise RowError(
            f"must have 0 or 1 (or false and true, no and yes) in `{column}`, one of several "
            f"columns of labels. Received: {value!r}. Columns of numbers require `task=regression`."
        )
    return text in _YES


def _number(value):
    """Returns a number that is finite in float32, or None."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) <= _LARGEST else None


def _named(value):
    """Returns a number as the name that it has in other formats, and anything else as it is."""
    if isinstance(value, bool | int) or isinstance(value, float) and math.isfinite(value):
        return json.dumps(value)
    return value


def _checked_name(name, known):
    if (problem := text_problem(name)) is not None:
        raise RowError(f"label {problem}")
    if known and name not in known:
        raise RowError(f"has an unknown label, `{name}`{did_you_mean(name, known)}")
    return name
