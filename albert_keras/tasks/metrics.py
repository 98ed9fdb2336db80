"""Scores of predicted classes and numbers, by scikit-learn and SciPy, and how sure they are.

All take `labels` and `predictions` of the same length: of classes the numbers int [count], of
scores float [count]. What is undefined counts as 0, the value of a model that knows nothing; each
function says when. No example at all, or a prediction that is not finite, is an InputError.
"""

from typing import NamedTuple

import numpy as np
import scipy.stats
import sklearn.metrics

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean


class Interval(NamedTuple):
    """An interval: its ends `low` and `high`, float."""

    low: float
    high: float


def accuracy(labels, predictions) -> float:
    """Returns the part of the predictions that are right, 0 to 1. Never undefined."""
    return float(sklearn.metrics.accuracy_score(*_classes(labels, predictions)))


def f1(labels, predictions) -> float:
    """Returns F1 of class 1, 0 to 1; there are classes 0 and 1 only.

    0 where undefined: class 1 neither occurs nor is predicted.
    """
    labels, predictions = _classes(labels, predictions)
    if max(labels.max(), predictions.max()) > 1:
        raise InputError("`f1` should have the classes 0 and 1 only. For more use `macro_f1`.")
    return float(sklearn.metrics.f1_score(labels, predictions, zero_division=0.0))


def macro_f1(labels, predictions) -> float:
    """Returns the mean of F1 over all classes that occur or are predicted, 0 to 1.

    Never undefined.
    """
    labels, predictions = _classes(labels, predictions)
    return float(sklearn.metrics.f1_score(labels, predictions, average="macro", zero_division=0.0))


def matthews(labels, predictions) -> float:
    """Returns Matthews' correlation of two or more classes, -1 to 1.

    0 where undefined: there is only one class in `labels`, or only one in `predictions`.
    """
    labels, predictions = _classes(labels, predictions)
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(sklearn.metrics.matthews_corrcoef(labels, predictions))


def pearson(labels, predictions) -> float:
    """Returns Pearson's correlation, -1 to 1.

    0 where undefined: `labels` or `predictions` are all the same, as a single one is.
    """
    labels, predictions = _numbers(labels, predictions)
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(scipy.stats.pearsonr(labels, predictions).statistic)


def spearman(labels, predictions) -> float:
    """Returns Spearman's correlation of ranks, -1 to 1; equal numbers share a mean rank.

    0 where undefined: `labels` or `predictions` are all the same, as a single one is.
    """
    labels, predictions = _numbers(labels, predictions)
    if _is_constant(labels) or _is_constant(predictions):
        return 0.0
    return float(scipy.stats.spearmanr(labels, predictions).statistic)


def mean_squared_error(labels, predictions) -> float:
    """Returns the mean of the squared differences; less is better. Never undefined."""
    return float(sklearn.metrics.mean_squared_error(*_numbers(labels, predictions)))


#: dict of str to callable. All metrics by name.
METRICS = {
    metric.__name__: metric
    for metric in (accuracy, f1, macro_f1, matthews, pearson, spearman, mean_squared_error)
}


def scores(names, labels, predictions) -> dict[str, float]:
    """Returns the metrics of these names, in this order; raises InputError for an unknown one."""
    metrics = {name: _metric(name) for name in names}
    return {name: metric(labels, predictions) for name, metric in metrics.items()}


def confusion_matrix(labels, predictions, num_classes):
    """Counts what was predicted for what.

    Args:
        labels: int [count].
        predictions: int [count].
        num_classes: int.

    Returns:
        np.ndarray int64 [num_classes, num_classes]. Rows are labels, columns predictions.

    Raises:
        InputError: If a class is not below `num_classes`.
    """
    labels, predictions = _classes(labels, predictions)
    highest = max(labels.max(), predictions.max())
    if highest >= num_classes:
        raise InputError(f"Classes should be below {num_classes}. Received: {highest}.")
    classes = np.arange(num_classes)
    return sklearn.metrics.confusion_matrix(labels, predictions, labels=classes).astype(np.int64)


def bootstrap_interval(
    metric, labels, predictions, confidence=0.95, resamples=1000, seed=0
) -> Interval:
    """Returns how far a metric moves when the examples are drawn anew, with replacement.

    The interval is of percentiles (Efron, 1979). It tells of the choice of examples only, not of
    the seed of a training.

    Args:
        metric: str or callable. A name in `METRICS`, or what takes labels and predictions, arrays
            of numbers or of anything else, and returns a float.
        labels: sequence or np.ndarray [count, ...].
        predictions: sequence or np.ndarray [count, ...].
        confidence: float. Between 0 and 1.
        resamples: int. How often examples are drawn.
        seed: int. The same seed draws the same examples.

    Raises:
        InputError: If the metric is unknown, or the two are of different lengths or empty.
    """
    metric = _metric(metric) if isinstance(metric, str) else metric
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    _check_lengths(labels, predictions)
    if not 0 < confidence < 1 or resamples < 1:
        raise InputError(
            "`confidence` should be between 0 and 1, `resamples` 1 or more. "
            f"Received: confidence={confidence}, resamples={resamples}."
        )
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(resamples):
        drawn = generator.integers(len(labels), size=len(labels))
        values.append(metric(labels[drawn], predictions[drawn]))
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return Interval(float(low), float(high))


def majority_baseline(training_labels, count):
    """Predicts without looking: the most frequent class, the lowest of equals; of scores the mean.

    Args:
        training_labels: int or float [any]. Ints are classes, floats are scores.
        count: int. How many predictions to make.

    Returns:
        np.ndarray [count], int64 or float64.
    """
    labels = np.asarray(training_labels)
    if not labels.size:
        raise InputError("`training_labels` should hold at least one label. Received: none.")
    if labels.dtype.kind == "f":
        return np.full(count, labels.mean(dtype=np.float64))
    return np.full(count, np.bincount(_as_classes(labels, "training_labels")).argmax())


def _metric(name):
    if name not in METRICS:
        raise InputError(f"The metric `{name}` is unknown{did_you_mean(name, METRICS)}")
    return METRICS[name]


def _classes(labels, predictions):
    labels = _as_classes(labels, "labels")
    predictions = _as_classes(predictions, "predictions")
    _check_lengths(labels, predictions)
    return labels, predictions


def _as_classes(values, name):
    values = np.asarray(values)
    if values.size and (values.ndim != 1 or values.dtype.kind not in "iu" or values.min() < 0):
        raise InputError(
            f"`{name}` should be the numbers of classes, int [count] from 0. "
            f"Received: {values.dtype} {list(values.shape)}."
        )
    return values.astype(np.int64)


def _numbers(labels, predictions):
    labels = np.asarray(labels, dtype=np.float64)
    predictions = np.asarray(predictions, dtype=np.float64)
    _check_lengths(labels, predictions)
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InputError(
                f"`{name}` should be finite numbers, float [count]. Received: "
                f"{list(values.shape)}, {np.count_nonzero(~np.isfinite(values))} not finite."
            )
    return labels, predictions


def _check_lengths(labels, predictions):
    if len(labels) != len(predictions) or not len(labels):
        raise InputError(
            "There should be one prediction for each label, and at least one. "
            f"Received: {len(labels)} labels, {len(predictions)} predictions."
        )


def _is_constant(values):
    return bool((values == values[0]).all())
