"""Labels, as Keras users have them → numbers that a loss reads."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from albert_keras.models.text_inputs import without_width
from data_pipeline.errors import InputError

#: How far the sum of shares may be from 1, as of probabilities that were written as text.
_ROUNDING = 1e-3
#: The largest number of float32, in which models learn.
_LARGEST = float(np.finfo(np.float32).max)


def label_names(labels: Sequence[str] | int | None) -> tuple[str, ...]:
    """Returns the names of labels; a number means as many labels with the names "0", "1", ...

    Raises:
        InputError: If they are not at least one, or not different.
    """
    if labels is None:
        return ()
    if isinstance(labels, int):
        labels = list(map(str, range(labels)))
    if isinstance(labels, str):
        raise InputError(f"`labels` must be a list of names. Received: {labels!r}.")
    names = tuple(map(str, labels))
    if not names or len(set(names)) < len(names):
        raise InputError(
            f"`labels` must be one or more different names. Received: {', '.join(names) or 'none'}."
        )
    return names


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
        InputError: If one is missing or no number of float32, or there are not `count` for each
            example.
    """
    rows = without_width(labels) if count == 1 else labels
    for at, row in enumerate(rows):
        for value in row if isinstance(row, list) and count > 1 else [row]:
            if not isinstance(value, int | float) or not abs(value) <= _LARGEST:
                raise InputError(
                    f"Label {at + 1} of {len(rows)}: it must be a number of at most "
                    f"{_LARGEST:.1e}. Received: {value!r:.80}."
                )
    return np.array(rows, np.float32) if count == 1 else _matrix(rows, count)


def zeros_and_ones(labels: list[Any], names: Sequence[str]) -> np.ndarray:
    """Returns whether each of C labels applies, float32 [N, C].

    Args:
        labels: Of N examples: a list of the names that apply; or numbers from 0 to 1, [N, C]:
            zeros and ones, or how much a label applies.
        names: Of the labels.

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
        if len(row) != len(names) or not are_numbers or not all(0 <= one <= 1 for one in row):
            raise InputError(
                f"Label {at + 1} of {len(rows)}: there must be {len(names)} zeros and ones, one "
                f"for each of {', '.join(names)}. Received: {row}."
            )
        found[at] = row
    return found


def answer_edges(answer: Any, context: str) -> tuple[int, int] | None:
    """Returns the first character of an answer to a question and one more than its last.

    White space around an answer does not belong to it.

    Args:
        answer: A text of the passage; or as in SQuAD `{"text": "noon", "answer_start": 12}`, where
            both may be lists of one, and without `answer_start` the first place counts; or None or
            an empty text if there is no answer.
        context: The passage.

    Returns:
        None if there is no answer.

    Raises:
        InputError: If it is nothing of this, or not in the passage.
    """
    text, start = answer, None
    if isinstance(answer, dict):
        text, start = answer.get("text", answer), answer.get("answer_start")
    if isinstance(text, list) and len(text) <= 1:
        text = text[0] if text else None
    if isinstance(start, list) and len(start) <= 1:
        start = start[0] if start else None
    if text is None or text == "":
        return None
    if not isinstance(text, str) or not isinstance(start, int | None) or isinstance(start, bool):
        raise InputError(
            "An answer must be a text of its passage, or an object with this `text` and its "
            f"`answer_start`. Received: {answer!r}."
        )
    start = context.find(text) if start is None else start
    if start < 0 or context[start : start + len(text)] != text or not text.strip():
        raise InputError(f"An answer must be in its passage. Received: {answer!r}.")
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def _matrix(rows, width):
    """Returns rows of numbers as float32 [N, `width`]; InputError if a row has another width."""
    for at, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != width:
            raise InputError(
                f"Label {at + 1} of {len(rows)}: there must be {width} values. Received: {row!r}."
            )
    return np.array(rows, np.float32).reshape(-1, width)
