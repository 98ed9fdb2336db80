"""Calls of signatures over strings for any number of texts."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from albert_keras.models.answers import check_finite

#: Examples that are computed at a time; of those with options, which have several sequences, fewer.
ROWS, CHOICES = 32, 8


def call_by_rows(call: Callable, signature: str, /, **inputs: list) -> list[dict]:
    """Calls a signature for any number of rows, in batches of similar length.

    Args:
        call: Takes the name of a signature, and lists of str by name; returns a dict of np.ndarray
            [B, ...].
        inputs: By name, equally long: texts or lists of texts, whose length may differ.

    Returns:
        The answer to each row, in order; it includes padding to the longest of its batch.
    """
    rows = list(zip(*inputs.values(), strict=True))
    # A batch has the same number of texts in each row.
    counts = [[len(value) for value in row if not isinstance(value, str)] for row in rows]
    sizes = [sum(map(_size, row)) for row in rows]
    order = sorted(range(len(rows)), key=lambda row: (counts[row], sizes[row]))
    answers = [None] * len(rows)
    batch_size = CHOICES if any(counts) else ROWS
    for _, several in itertools.groupby(order, counts.__getitem__):
        while chosen := list(itertools.islice(several, batch_size)):
            columns = zip(*(rows[row] for row in chosen), strict=True)
            found = call(signature, **dict(zip(inputs, map(list, columns), strict=True)))
            check_finite(found)
            for number, row in enumerate(chosen):
                answers[row] = {name: values[number] for name, values in found.items()}
    return answers


def answers_by_signatures(
    call: Callable,
    signatures: Sequence[str],
    model_class: Any,
    columns: Mapping[str, Sequence[Any]],
    ids: Sequence[str] | None = None,
) -> list[Any]:
    """Answers texts as a model in memory does, by its signatures over strings.

    Args:
        call: As of `call_by_rows`.
        signatures: The names of all signatures of the export.
        model_class: Of the model, an AlbertForTexts.
        columns: Lists of str, or of lists of str for "options", by the names of the preprocessor of
            the model, equally long.
        ids: Of the examples; None is their numbers.

    Returns:
        list of named tuples, see `AlbertForTexts.answers_of`.
    """
    signature, inputs = model_class.signature
    if signature not in signatures:  # that of a model which takes no pairs
        signature, inputs = "serving_default", {"text": "text"}
    given = {name: list(columns[column]) for name, column in inputs.items()}
    answers = []
    for at, row in enumerate(call_by_rows(call, signature, **given)):
        one = {name: [values[at]] for name, values in columns.items()}
        one["id"] = [str(at) if ids is None else ids[at]]
        arrays = {name: _one(value) for name, value in row.items()}
        answers += model_class.answers_of(arrays, one)
    return answers


def _one(value):
    """Returns the value of a row as an array [1, ...]."""
    return np.array([value], object) if isinstance(value, bytes) else np.asarray(value)[None]


def _size(value):
    return len(value) if isinstance(value, str) else sum(map(len, value))
