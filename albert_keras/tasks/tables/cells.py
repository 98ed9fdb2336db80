"""Reads the cells of a row: a text, or a label of one of several kinds.

A cell that cannot be used is a RowError, whose text continues "line 7 ...".
"""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.rows import RowError
from data_pipeline.settings import did_you_mean

#: The largest number of float32, in which models learn.
_LARGEST = float(np.finfo(np.float32).max)
_YES, _NO = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no")
#: Signs between several names of labels.
_JOINTS = re.compile(r"\s*[,;|/+&、，；]\s*")
#: What a data frame writes for a missing cell, as text, and databases for NULL.
_MISSING = ("nan", "NaN", "<NA>", "\\N")
#: Values other than texts in a list, and objects that Python writes with the name of their type.
_VALUE = r"(?:-?[\d.]+(?:e[-+]?\d+)?|nan|None|null|[Tt]rue|[Ff]alse|np\.\w+\([^()]*\))"
_TYPES = "array|tensor|tf\\.Tensor|OrderedDict|Counter|defaultdict|deque|set|frozenset|dict_\\w+"
#: A list, tuple, set or dictionary as Python and JSON write it, an array as NumPy does, or bytes.
_STRUCTURE = re.compile(
    rf"""
    \[\s*\]  |  [\[{{]\s*(?P<list>['"]).*(?P=list)\s*,?\s*[\]}}]
    |  \(\s*(?P<tuple>['"])[^'"]*(?P=tuple)\s*,(?:.*(?P=tuple))?\s*,?\s*\)
    |  \{{\s*(?:['"][^:]*|{_VALUE}\s*):.*\}}  |  \[\s*[({{]\s*['"].*[)}}]\s*\]
    |  [\[({{][\s\[]*{_VALUE}(?:[\s,\[\]]+{_VALUE})*[\s,\]]*[\]}}]
    |  \(\s*{_VALUE}\s*,(?:\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*,?)?\s*\)
    |  (?:{_TYPES})\(.*\)  |  b(?P<bytes>['"]).*(?P=bytes)
    """,
    re.DOTALL | re.VERBOSE,
)

#: Lists as other languages write them, such as R's `c("a", "b")`: all in brackets, perhaps after a
#: name, and with a sign between entries or around them, or empty. A text may look so, too.
_LIST_OF_NAMES = re.compile(
    r"[\w.]*\s*(?:\(\s*\)|<\s*>|\[\s*\]|\{\s*\}|[(<\[{].*[,;=|'\"].*[)>\]}])|\w+\(0\)", re.DOTALL
)

#: How the cells of the columns of a label become the label of an example: from values and columns.
Label = Callable[[list[Any], Sequence[str | int]], Any]


def class_of(values: list[Any], columns: Sequence[str | int], known: Sequence[str] = ()) -> str:
    """Returns the name of a class, without white space around it; `known`, if any, are allowed."""
    value = values[0]
    if isinstance(value, list) and len(value) == 1:  # as doccano writes a class
        value = value[0]
    value = _named(value)
    if not isinstance(value, str) or not value.strip():
        is_list = isinstance(value, list) and value
        advice = " `label_separator` is for several." if is_list else ""
        raise RowError(f"must have a name as label. Received: {value!r}.{advice}")
    name = value.strip()
    if name not in known:
        check_plain(name, "one name as label", _LIST_OF_NAMES)
    _check_known(name, known)
    return name


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
            advice = ""
            if number is None and re.search(r"\d", str(value)):
                advice = " Write digits and a decimal point alone: 1234.5 for 1,234.5 or 1.234,5."
            rule = f"must have a number{rule} in `{column}`"
            raise RowError(f"{rule}. Received: {value!r:.80}.{advice}")
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

    An empty cell has no label. A list must not repeat a name: it may be one of zeros and ones.
    `known`, if any, are all names that are allowed.
    """
    [value] = values
    is_list = isinstance(value, list)
    if isinstance(value, str):
        check_plain(value, f"names between `{separator}` as label", _LIST_OF_NAMES)
        value = value.split(separator)
    if is_list:
        value = [_named(one) for one in value]
    if value is None:
        value = []
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise RowError(
            f"must have names between `{separator}`, or a list of names, as label. "
            f"Received: {value!r}."
        )
    counts = Counter(name.strip() for name in value)
    names = sorted(counts.keys() - {""})
    for name in names:
        if is_list and counts[name] > 1:
            raise RowError(
                f"has the label `{name}` more than once in a list of names. Zeros and ones need a "
                "column for each label, and `label` names all of these columns."
            )
        _check_known(name, known)
    return tuple(names)


def check_plain(value: str, what: str, others: re.Pattern = _STRUCTURE) -> None:
    """Raises RowError for a list, a dictionary or an array written as text, or for `others`."""
    if _STRUCTURE.fullmatch(value.strip()) or others.fullmatch(value.strip()):
        raise RowError(
            f"must have {what}. Received a list or another structure written as text: "
            f"{value[:60]!r}. Write it as .jsonl, or its parts in columns of their own."
        )


def text_of(value: Any, column: str | int, may_be_blank: bool = False) -> str:
    """Returns a text; raises RowError if a model cannot read it, see `text_problem`."""
    problem = text_problem(value, may_be_blank)
    if problem is None and value.strip() in _MISSING[2:]:
        problem = f"must be a text. Received {value.strip()}, which means none."
    if problem is not None:
        raise RowError(f"`{column}` {problem}")
    check_plain(value, f"a text as `{column}`")
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


def _check_known(name, known):
    if (problem := text_problem(name)) is not None:
        raise RowError(f"label {problem}")
    if not known and name in _MISSING:
        raise RowError(
            f"must have a name as label. Received {name}, which means none. If it is the name of a "
            "class, give all names as `task.labels`."
        )
    if known and name not in known:
        advice = did_you_mean(name, known)
        if are_several(name, known):
            advice = ". It seems to be several: `label_separator` makes labels of them"
        raise RowError(f"has an unknown label, `{name}`{advice}")


def are_several(name: str, known: Iterable[str]) -> bool:
    """Returns whether a name of a label is several with a sign between them, that others have."""
    parts = set(_JOINTS.split(name))
    others = (_JOINTS.split(one) for one in known if one != name)
    return len(parts) > 1 and parts <= set(itertools.chain.from_iterable(others))
