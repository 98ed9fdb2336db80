"""What each threshold of a label finds, and the threshold at which errors cost least."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.errors import InputError

#: Thresholds of a table.
_THRESHOLDS = tuple(number / 10 for number in range(1, 10))


class ThresholdRow(NamedTuple):
    """Precision and recall of a label that applies from a threshold of its probability on."""

    threshold: float
    precision: float  # 1 where the label never applies
    recall: float


class ThresholdTable(NamedTuple):
    """What the thresholds of a label find."""

    label: str
    rows: tuple[ThresholdRow, ...]  # of the thresholds 0.1 to 0.9
    cheapest: ThresholdRow | None = None  # at the least cost, if costs are known


def threshold_tables(
    task: Any, examples: list, answers: list, miss_cost: float | None = None
) -> tuple[ThresholdTable, ...]:
    """Returns the table of the second of two classes, or of each of several labels.

    A label that applies to all examples or to none has no table.

    Args:
        task: Task. Others than of two classes or of several labels have no tables.
        examples: Labelled.
        answers: With `probabilities`.
        miss_cost: float or None. How many wrong alarms one missed example of a label costs.

    Raises:
        InputError: If there is a cost, but no label has a threshold.
    """
    found = []
    for label, truth in _truths(task, examples):
        if 0 < truth.sum() < len(truth):
            values = np.array([answer.probabilities[label] for answer in answers])
            thresholds = list(_THRESHOLDS)
            if miss_cost is not None:
                thresholds.append(_cheapest(truth, values, miss_cost))
            rows = list(_rows(truth, values, thresholds))
            cheapest = None if miss_cost is None else rows.pop()
            found.append(ThresholdTable(label, tuple(rows), cheapest))
    if miss_cost is not None and not found:
        raise InputError(
            "`miss_cost` requires two classes, or several labels for each row, and examples with "
            f"and without a label. Received: {task.config.name}."
        )
    return tuple(found)


def _truths(task, examples) -> Iterator[tuple[str, np.ndarray]]:
    """Yields each label that has a threshold, and whether it applies: bool [N]."""
    if task.kind == "multi_label":
        for label in task.labels:
            yield label, np.array([label in example.label for example in examples])
    elif task.kind == "classification" and len(task.labels) == 2:
        label = task.labels[1]
        yield label, np.array([example.label == label for example in examples])


def _rows(truth, values, thresholds: Sequence[float]) -> Iterator[ThresholdRow]:
    from sklearn.metrics import precision_recall_curve

    precision, recall, known = precision_recall_curve(truth, values)
    for threshold in thresholds:
        at = np.searchsorted(known, threshold)
        yield ThresholdRow(float(threshold), float(precision[at]), float(recall[at]))


def _cheapest(truth, values, miss_cost):
    """Returns the threshold with the least cost, of equals the highest: between two values."""
    from sklearn.metrics import roc_curve

    alarms, hits, known = roc_curve(truth, values, drop_intermediate=False)
    costs = alarms * (~truth).sum() + miss_cost * (1 - hits) * truth.sum()
    at = int(np.argmin(costs))
    bounds = np.clip([known[at], *known[at + 1 : at + 2]], 0, 1)
    return float(bounds.mean()) if at else 1.0
