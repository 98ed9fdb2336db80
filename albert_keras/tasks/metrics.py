"""Scores of predicted classes and numbers, by scikit-learn and SciPy, and their uncertainty.

All take `labels` and `predictions` of the same length: for classes the numbers int [count], for
scores float [count]. Undefined scores are 0, the value of a model that knows nothing. No
example, or a number that is not finite, is an InputError.

SciPy's statistics and scikit-learn take a second to import: only functions that use them do so.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: From labels and predictions to a score.
Metric = Callable[[Any, Any], float]
#: A score on fewer examples than this is reported with a warning.
_FEW_EXAMPLES = 30


class Interval(NamedTuple):
    low: float
    high: float


def _by_sklearn(name: str, is_correlation: bool = False, **settings: Any) -> Metric:
    """Returns a score of scikit-learn; see `_by_scipy` for correlations."""

    def metric(labels, predictions):
        import sklearn.metrics

        arrays = _checked(labels, predictions)
        if is_correlation and _is_constant(arrays):
            return 0.0
        return float(getattr(sklearn.metrics, name)(*arrays, **settings))

    return metric


def _by_scipy(name: str) -> Metric:
    """Returns a correlation of SciPy, -1 to 1; 0 where all labels or predictions are equal."""

    def metric(labels, predictions):
        import scipy.stats

        arrays = _checked(labels, predictions)
        if _is_constant(arrays):
            return 0.0
        return float(getattr(scipy.stats, name)(*arrays).statistic)

    return metric


#: All metrics by name.
METRICS: dict[str, Metric] = {
    "accuracy": _by_sklearn("accuracy_score"),  # the fraction of right predictions
    # Of class 1 of the classes 0 and 1; 0 if it neither occurs nor is predicted.
    "f1": _by_sklearn("f1_score", zero_division=0.0),
    # The mean over all classes that occur or are predicted.
    "macro_f1": _by_sklearn("f1_score", average="macro", zero_division=0.0),
    # Of two or more classes, -1 to 1; 0 if all labels or all predictions are the same class.
    "matthews": _by_sklearn("matthews_corrcoef", is_correlation=True),
    "pearson": _by_scipy("pearsonr"),
    "spearman": _by_scipy("spearmanr"),  # of ranks; equal numbers have their mean rank
    "mean_squared_error": _by_sklearn("mean_squared_error"),  # less is better
}


def scores(names: Iterable[str], labels, predictions) -> dict[str, float]:
    """Returns the metrics of these names, in this order; raises InputError for an unknown one."""
    metrics = {name: _metric(name) for name in names}
    return {name: metric(labels, predictions) for name, metric in metrics.items()}


def confusion_matrix(labels, predictions, num_classes: int) -> np.ndarray:
    """Counts the predictions (columns) for each label (rows): int64 [num_classes, num_classes]."""
    classes = np.arange(num_classes)
    import sklearn.metrics

    return sklearn.metrics.confusion_matrix(labels, predictions, labels=classes).astype(np.int64)


def bootstrap_interval(
    metric: str | Metric, labels, predictions, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Returns the 95 % range of a metric when the examples are resampled with replacement.

    The interval is of percentiles (Efron, 1979). It covers only the choice of examples, not the
    random seed of a training.

    `metric` is a name in `METRICS`, or a function of `labels` and `predictions`, arrays of numbers
    or of anything else, [count, ...].
    """
    labels, predictions = _checked(labels, predictions)
    generator = np.random.default_rng(seed)
    is_right = labels == predictions if metric == "accuracy" else None
    metric = _metric(metric) if isinstance(metric, str) else metric
    values = []
    for _ in range(resamples):
        sample = generator.integers(len(labels), size=len(labels))
        if is_right is None:
            values.append(metric(labels[sample], predictions[sample]))
        else:  # the same number, a hundred times faster
            values.append(is_right[sample].mean())
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def shown_metric(name: str, positive_class: str | None = None) -> str:
    """Returns the name of a metric as it is shown, with the class that an F1 score refers to."""
    is_of_a_class = positive_class is not None and name == "f1"
    return f"{name} (of `{positive_class}`)" if is_of_a_class else name


def count_caution(count: int, metric: str, what: str = "development set") -> str | None:
    """Explains a score on very few examples, without the last full stop; None for enough of them.

    Args:
        count: Number of examples.
        metric: Name of the score.
        what: Names the set of examples.
    """
    if count >= _FEW_EXAMPLES:
        return None
    examples = f"{count} example{'' if count == 1 else 's'}"
    return f"the {what} has only {examples}, which is too few for a reliable {metric}"


def _metric(name):
    if name not in METRICS:
        raise InputError(f"The metric `{name}` is unknown{did_you_mean(name, METRICS)}")
    return METRICS[name]


def _is_constant(arrays):
    return any((array == array[0]).all() for array in arrays)


def _checked(labels, predictions):
    labels, predictions = map(_array, (labels, predictions))
    if len(labels) != len(predictions) or not len(labels):
        raise InputError(
            "There must be one prediction for each label, and at least one. "
            f"Received: {len(labels)} labels, {len(predictions)} predictions."
        )
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            faults = np.count_nonzero(~np.isfinite(values))
            raise InputError(f"`{name}` must be finite. Received: {faults} that are not.")
    return labels, predictions


def _array(values):
    values = np.asarray(values)
    return values.astype(np.float64) if values.dtype.kind == "f" else values
