"""Texts and labels in memory, as Keras users have them → lists, and arrays that a loss reads."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: How far the sum of shares may be from 1, as of probabilities that were written as text.
_ROUNDING = 1e-3


@dataclass
class Examples:
    """N examples in memory.

    Attributes:
        columns: dict of list. The texts by their names, see `TextPreprocessor.fields`.
        labels: What a user gave as labels, a list; None if there are none.
        weights: float32 [N] or None.
    """

    columns: dict[str, list]
    labels: Any = None
    weights: Any = None

    def __post_init__(self):
        parts = self.columns | {"labels": self.labels, "weights": self.weights}
        lengths = {name: len(values) for name, values in parts.items() if values is not None}
        if len(set(lengths.values())) != 1 or not min(lengths.values()):
            listing = ", ".join(f"{count} of {name}" for name, count in lengths.items())
            raise InputError(
                f"There must be at least one input, and as many labels. Received: {listing}."
            )
        for name, values in self.columns.items():
            _check_texts(name, values)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def rows(self, numbers: Any) -> "Examples":
        """Returns the examples with some numbers, in their order."""

        def chosen(values):
            return None if values is None else [values[number] for number in numbers]

        weights = None if self.weights is None else self.weights[numbers]
        columns = {name: chosen(values) for name, values in self.columns.items()}
        return Examples(columns, chosen(self.labels), weights)

    def split(self, share: float) -> tuple["Examples", "Examples | None"]:
        """Returns the first examples, and the rest, of which there is that share; None for 0."""
        if not share:
            return self, None
        begin = math.floor(len(self) * (1 - share))
        if not 0 < begin < len(self):
            raise InputError(
                "`validation_split` must leave examples on both sides. "
                f"Received: {share} of {len(self)} examples."
            )
        return self.rows(np.arange(begin)), self.rows(np.arange(begin, len(self)))


def examples_of(
    x: Any, y: Any, weights: Any, names: tuple[str, ...], label_names: Sequence[str] = ()
) -> Examples:
    """Returns examples that are in memory.

    Args:
        x: Texts: a list, an array, a column of a table, or one of width 1; a tuple of such columns
            in the order of `names`; a dict of them; or a DataFrame with columns of these names, and
            perhaps `label`.
        y: Labels; None if `x` has them, or there are none.
        weights: float [N] or None.
        names: Of the texts of an example.
        label_names: The names that the columns of a table of labels must have.

    Raises:
        InputError: If there are no such texts, or other numbers of labels or weights.
    """
    if isinstance(x, str | bytes):
        raise InputError("Inputs must be a list of texts. Received: a single text.")
    if hasattr(x, "columns"):
        x, y = _of_frame(x, y, names)
    if is_parts(x):
        if len(x) > len(names):
            raise InputError(
                f"An example has the parts {', '.join(names)}. Received: {len(x)} parts."
            )
        x = dict(zip(names, x, strict=False))
    if not isinstance(x, Mapping):
        x = {names[0]: x}
    if unknown := [name for name in x if name not in names]:
        raise InputError(f"`{unknown[0]}` is not an input{did_you_mean(str(unknown[0]), names)}")
    columns = {name: _column(name, values) for name, values in x.items()}
    if "words" not in names:  # whose sentences may have a single word
        columns |= {name: without_width(columns[name]) for name in columns.keys() - {"options"}}
    if {*columns} == {"text"} and "words" in names:
        is_list = any(isinstance(value, list) for value in columns["text"])
        columns = {"words" if is_list else "text": columns["text"]}
    if weights is not None:
        weights = np.array(without_width(plain(weights)), np.float32)
        if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError(
                "`sample_weight` must be a number of at least 0 for each example. "
                f"Received: an array of the shape {weights.shape}."
            )
    return Examples(columns, None if y is None else _labels(y, label_names), weights)


def _labels(labels, names):
    """Returns labels as a list; a table, or a dict of columns, has a row for each example."""
    if hasattr(labels, "columns"):
        labels = _in_order(labels, names).to_numpy()
    if isinstance(labels, Mapping):
        columns = {name: plain(values) for name, values in labels.items()}
        rows = zip(*columns.values(), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    if isinstance(labels, str | bytes):
        raise InputError(f"Labels must be a list. Received: {labels!r}.")
    return plain(labels)


def _in_order(frame, names):
    """Returns a table of labels with its columns in the order of the names of the labels."""
    columns = {str(column): column for column in frame.columns}
    if len(columns) < 2 or not names or names == tuple(map(str, range(len(names)))):
        return frame
    if {*columns} != {*names}:
        raise InputError(
            f"The columns of labels must be {', '.join(names)}. Received: {', '.join(columns)}. "
            "Rename them, or give an array, whose columns are in this order."
        )
    return frame[[columns[name] for name in names]]


def is_parts(x: Any) -> bool:
    """Returns whether inputs are a tuple with a column of each part, and not a tuple of texts."""
    return isinstance(x, tuple) and bool(x) and not isinstance(x[0], str | bytes)


def _of_frame(frame, labels, names):
    """Returns the columns of a table that are texts, by name, and its labels."""
    known = ", ".join(map(str, frame.columns))
    columns = {name: frame[name] for name in names if name in frame.columns}
    if not columns and len(frame.columns) == 1:
        columns = {names[0]: frame[frame.columns[0]]}
    if not columns:
        raise InputError(
            f"The table has no column `{names[0]}`. Received the columns {known}. Rename one, or "
            "give the columns themselves."
        )
    if labels is None and "label" in frame.columns:
        labels = frame["label"]
    return columns, labels


def _column(name, values):
    """Returns the texts of a column as a list."""
    values = plain(values)
    if not isinstance(values, list):
        raise InputError(f"`{name}` must be a list. Received: {values!r}.")
    return values


def _check_texts(name, values):
    """Raises InputError for values of a column that are no texts, or no lists of them."""
    is_list = [isinstance(value, list) for value in values]
    if name not in ("words", "options") and any(is_list):
        raise InputError(
            f"`{name}` must be texts. Received lists of texts. Examples of several texts are a "
            "tuple of columns, such as `tuple(zip(*rows))`, not a list of rows."
        )
    for at, value in enumerate(values):
        if name in ("words", "options") and (not isinstance(value, list) or not value):
            raise InputError(
                f"Input {at + 1} of {len(values)}: `{name}` must be a list of texts. "
                f"Received: {value!r}."
            )
        for text in value if isinstance(value, list) else [value]:
            if not isinstance(text, str):
                raise InputError(
                    f"Input {at + 1} of {len(values)}: `{name}` must be a text. Received: {text!r}."
                )
            if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(
                    f"Input {at + 1} of {len(values)}: `{name}` must be Unicode. It has half a "
                    "surrogate pair."
                )


def sizes_of(columns: Mapping[str, list]) -> np.ndarray:
    """Returns the number of characters of each example, int64 [N]."""
    counts = [
        [sum(map(len, value)) if isinstance(value, list) else len(value) for value in values]
        for values in columns.values()
    ]
    return np.sum(counts, axis=0)


# === Labels


def plain(value: Any) -> Any:
    """Returns values of NumPy, TensorFlow or pandas as plain Python ones: lists, str, numbers."""
    for method in ("numpy", "to_list", "tolist"):
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")  # as the call of a preprocessor reads texts
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [plain(one) for one in value]
    return value


def class_targets(labels: list[Any], names: Sequence[str], are_shares: bool = True) -> np.ndarray:
    """Returns classes as a loss of Keras reads them.

    Args:
        labels: Of N examples: names, numbers or booleans, [N] or [N, 1]; or a value for each class,
            [N, C]: one-hot, or its share, as of a teacher or of several annotators. If any name is
            a number, numbers are read as names and not as positions.
        names: Of the C classes, in their order.
        are_shares: Whether the values of a row must be shares, whose sum is 1.

    Returns:
        int32 [N], or float32 [N, C].

    Raises:
        InputError: If a label is of no class, or the values of a row are no shares.
    """
    rows = without_width(labels)
    if not (rows and isinstance(rows[0], list)):
        return label_ids(rows, names)
    values = _matrix(rows, len(names))
    is_right = np.isfinite(values).all(axis=1)
    if are_shares:
        is_right &= (values >= 0).all(axis=1) & (np.abs(values.sum(axis=1) - 1) < _ROUNDING)
    if not is_right.all():
        at = int(np.argmin(is_right))
        raise InputError(
            f"Label {at + 1} of {len(rows)}: it must be the name or the number of a class, or "
            f"shares of {len(names)} classes whose sum is 1, such as zeros and a one. "
            f"Received: {rows[at]}."
        )
    return values


def class_ids(labels: list[Any], names: Sequence[str]) -> np.ndarray:
    """Returns the numbers of classes, int32 [N]; labels as of `class_targets`, whole classes."""
    values = class_targets(labels, names)
    if values.ndim == 1:
        return values
    if (values.max(axis=1) < 1).any():
        at = int(np.argmax(values.max(axis=1) < 1))
        raise InputError(
            f"Label {at + 1} of {len(values)}: it must be one class. Received: {labels[at]}."
        )
    return values.argmax(axis=1).astype(np.int32)


def label_ids(values: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    """Returns the numbers of labels that are given by name, number or boolean: int32 [N].

    Raises:
        InputError: If one is unknown.
    """
    known = {name: number for number, name in enumerate(names)}
    has_numbers = any(name.isdecimal() for name in names)  # which are then no positions
    found = np.empty(len(values), np.int32)
    for at, value in enumerate(values):
        number = known.get(str(value))
        is_number = isinstance(value, bool | int | float) and math.isfinite(value)
        if number is None and is_number and value == int(value):
            whole = int(value)  # of 3.0, as pandas has it beside a blank
            is_position = not has_numbers and 0 <= whole < len(names)
            number = whole if is_position else known.get(str(whole))
        if number is None:
            listing = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            positions = "" if has_numbers else f", or a number from 0 to {len(names) - 1}"
            raise InputError(
                f"Label {at + 1} of {len(values)}: unknown label, `{value}`. It must be one of "
                f"{listing}{positions}."
            )
        found[at] = number
    return found


def numbers_of(labels: list[Any], count: int) -> np.ndarray:
    """Returns numbers to predict, float32 [N], or [N, C] if there are several.

    Raises:
        InputError: If one is missing or not finite, or there are not `count` for each example.
    """
    rows = without_width(labels) if count == 1 else labels
    for at, row in enumerate(rows):
        for value in row if isinstance(row, list) and count > 1 else [row]:
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(
                    f"Label {at + 1} of {len(rows)}: it must be a number. Received: {value!r}."
                )
    return np.array(rows, np.float32) if count == 1 else _matrix(rows, count)


def zeros_and_ones(labels: list[Any], names: Sequence[str], are_whole: bool = False) -> np.ndarray:
    """Returns whether each of C labels applies, float32 [N, C].

    Args:
        labels: Of N examples: a list of the names that apply; or numbers from 0 to 1, [N, C]:
            zeros and ones, or how much a label applies.
        names: Of the labels.
        are_whole: Whether only zeros and ones are numbers of labels.

    Raises:
        InputError: If a name is unknown, or a row has not C such numbers.
    """
    rows = [[row] if isinstance(row, str) else row for row in labels]
    found = np.zeros((len(rows), len(names)), np.float32)
    for at, row in enumerate(rows):
        if not isinstance(row, list):
            raise InputError(
                f"Label {at + 1} of {len(rows)}: it must be a list of names, or {len(names)} zeros "
                f"and ones. Received: {row!r}."
            )
        if all(isinstance(name, str) for name in row):
            if unknown := [name for name in row if name not in names]:
                raise InputError(
                    f"Label {at + 1} of {len(rows)}: unknown label, `{unknown[0]}`. It must be one "
                    f"of {', '.join(names)}."
                )
            found[at, [list(names).index(name) for name in row]] = 1
            continue
        are_numbers = all(isinstance(value, bool | int | float) for value in row)
        if (
            len(row) != len(names)
            or not are_numbers
            or not all(value in (0, 1) if are_whole else 0 <= value <= 1 for value in row)
        ):
            raise InputError(
                f"Label {at + 1} of {len(rows)}: there must be {len(names)} zeros and ones, one "
                f"for each of {', '.join(names)}. Received: {row}."
            )
        found[at] = row
    return found


def without_width(values: list[Any]) -> list[Any]:
    """Returns the values of a column of width 1, [[1], [0]], as [1, 0]; others as they are."""
    if values and all(isinstance(value, list) and len(value) == 1 for value in values):
        return [value[0] for value in values]
    return values


def _matrix(rows, width):
    """Returns rows of numbers as float32 [N, `width`]; InputError if a row has another width."""
    for at, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            raise InputError(
                f"Label {at + 1} of {len(rows)}: there must be {width} values. Received: {row!r}."
            )
    return np.array(rows, np.float32).reshape(-1, width)
