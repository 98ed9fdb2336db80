"""What a user gives as the labels of examples → the arrays that a loss reads."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from data_pipeline.errors import InputError


def plain(value: Any) -> Any:
    """Returns values of NumPy, TensorFlow or pandas as plain Python ones: lists, str, numbers."""
    for method in ("numpy", "to_list", "tolist"):
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [plain(one) for one in value]
    return value


def class_ids(labels: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns the numbers of classes.

    Args:
        labels: Of N examples: names, numbers or booleans, [N] or [N, 1]; or one-hot, [N, C]. A
            number that is a name counts as one.
        names: Of the C classes, in their order.

    Returns:
        dict. "labels" int32 [N]; for one-hot labels "one_hot" float32 [N, C], too, for losses of
        Keras that need them.

    Raises:
        InputError: If a label is of no class.
    """
    rows = without_width(plain(labels))
    if rows and isinstance(rows[0], list):
        values = _matrix(rows, len(names))
        is_one_hot = ((values == 0) | (values == 1)).all(axis=1) & (values.sum(axis=1) == 1)
        if not is_one_hot.all():
            at = int(np.argmin(is_one_hot))
            raise InputError(
                f"Label {at + 1} of {len(rows)}: it must be the name or the number of a class, or "
                f"zeros and a one for {len(names)} classes. Received: {rows[at]}."
            )
        return {"labels": values.argmax(axis=1).astype(np.int32), "one_hot": values}
    return {"labels": label_ids(rows, names)}


def label_ids(values: Sequence[Any], names: Sequence[str]) -> np.ndarray:
    """Returns the numbers of labels that are given by name, number or boolean: int32 [N].

    Raises:
        InputError: If one is unknown.
    """
    known = {name: number for number, name in enumerate(names)}
    found = np.empty(len(values), np.int32)
    for at, value in enumerate(values):
        number = known.get(str(value))
        if number is None and isinstance(value, bool | int | float):
            is_number = math.isfinite(value) and value == int(value)
            number = int(value) if is_number and 0 <= value < len(names) else None
            if number is None and is_number:
                number = known.get(str(int(value)))  # 3.0, as pandas has it beside a blank
        if number is None:
            listing = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise InputError(
                f"Label {at + 1} of {len(values)}: unknown label, `{value}`. It must be one of "
                f"{listing}, or a number from 0 to {len(names) - 1}."
            )
        found[at] = number
    return found


def numbers_of(labels: Any, count: int) -> dict[str, np.ndarray]:
    """Returns numbers to predict, "labels" float32 [N], or [N, C] if there are several.

    Raises:
        InputError: If one is missing or not finite, or there are not `count` for each example.
    """
    rows = plain(labels)
    rows = without_width(rows) if count == 1 else rows
    for at, row in enumerate(rows):
        for value in row if isinstance(row, list) and count > 1 else [row]:
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(
                    f"Label {at + 1} of {len(rows)}: it must be a number. Received: {value!r}."
                )
    values = np.array(rows, np.float32) if count == 1 else _matrix(rows, count)
    return {"labels": values}


def zeros_and_ones(labels: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Returns whether each of C labels applies, "labels" int32 [N, C].

    Args:
        labels: Of N examples: a list of the names that apply; or zeros and ones, [N, C].
        names: Of the labels.

    Raises:
        InputError: If a name is unknown, or a row has not C zeros and ones.
    """
    rows = [[row] if isinstance(row, str) else row for row in plain(labels)]
    found = np.zeros((len(rows), len(names)), np.int32)
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
        if len(row) != len(names) or any(value not in (0, 1) for value in row):
            raise InputError(
                f"Label {at + 1} of {len(rows)}: there must be {len(names)} zeros and ones, one "
                f"for each of {', '.join(names)}. Received: {row}."
            )
        found[at] = row
    return {"labels": found}


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
