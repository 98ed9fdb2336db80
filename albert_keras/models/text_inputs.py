"""Texts and labels in memory, as Keras users have them → lists."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean


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
                "There must be at least one input, and as many labels. "
                f"Received: {listing or 'nothing'}."
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
                "`sample_weight` must be a number of at least 0 for each example. Received: an "
                f"array of the shape {weights.shape}, from {weights.min()} to {weights.max()}."
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
    values = values if isinstance(values, set) else plain(values)  # a set has no order
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
        least = 2 if name == "options" else 1
        if name in ("words", "options") and (not isinstance(value, list) or len(value) < least):
            raise InputError(
                f"Input {at + 1} of {len(values)}: `{name}` must be a list of at least {least}. "
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


def alike(columns: Mapping[str, Sequence[Any]]) -> list[list[int]]:
    """Returns the numbers of examples that can be computed together, in groups.

    They have the same number of options.
    """
    groups: dict[int, list[int]] = {}
    count = len(next(iter(columns.values())))
    for at, options in enumerate(columns.get("options", [()] * count)):
        groups.setdefault(len(options), []).append(at)
    return list(groups.values())


def sizes_of(columns: Mapping[str, list]) -> np.ndarray:
    """Returns the number of characters of each example, int64 [N]."""
    counts = [
        [sum(map(len, value)) if isinstance(value, list) else len(value) for value in values]
        for values in columns.values()
    ]
    return np.sum(counts, axis=0)


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


def without_width(values: list[Any]) -> list[Any]:
    """Returns the values of a column of width 1, [[1], [0]], as [1, 0]; others as they are."""
    if values and all(isinstance(value, list) and len(value) == 1 for value in values):
        return [value[0] for value in values]
    return values
