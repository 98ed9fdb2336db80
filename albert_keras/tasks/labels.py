"""Names of classes and of tags: which there may be, and the numbers that models know them by."""

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean


def check_labels(labels, what):
    """Makes sure that there are two labels or more, all different.

    Args:
        labels: sequence of str.
        what: str. What they are called in the error.

    Raises:
        InputError: If there are not.
    """
    if len(set(labels)) < 2 or len(set(labels)) < len(labels):
        listing = ", ".join(labels) or "none"
        raise InputError(f"{what} should be two or more, all different. Received: {listing}.")


def label_numbers(values, labels):
    """Numbers labels.

    Args:
        values: iterable of str.
        labels: sequence of str. All there are, in the order of their numbers.

    Returns:
        int64 array. Of each value, its place in `labels`.

    Raises:
        InputError: If a value is none of them.
    """
    numbers = {label: number for number, label in enumerate(labels)}
    values = list(values)
    unknown = [value for value in values if value not in numbers]
    if unknown:
        raise InputError(f"The label `{unknown[0]}` is unknown{did_you_mean(unknown[0], labels)}")
    return np.array([numbers[value] for value in values], np.int64)
