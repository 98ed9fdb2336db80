"""Scores of predicted classes and numbers, by scikit-learn and SciPy, and their uncertainty.

All take `labels` and `predictions` of the same length: for classes the numbers int [count], for
scores float [count]. Undefined scores are 0, the value of a model that knows nothing. No example is
an InputError.

SciPy's statistics and scikit-learn take a second to import: only functions that use them do so.
"""

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.errors import InputError

#: From labels and predictions to a score.
Metric = Callable[[Any, Any], float]
#: A score on fewer examples than this is reported with a warning.
FEW_EXAMPLES = 30


class Interval(NamedTuple):
    low: float
    high: float


def _imported(module: str, name: str, is_correlation: bool = False, **settings: Any) -> Metric:
    """Returns a score of a library; a correlation is 0 if all labels or predictions are equal."""

    def metric(labels, predictions):
        arrays = _checked(labels, predictions)
        if is_correlation and any((array == array[0]).all() for array in arrays):
            return 0.0
        found = getattr(importlib.import_module(module), name)(*arrays, **settings)
        return float(getattr(found, "statistic", found))

    return metric


def _accuracy(labels, predictions):
    """Returns the fraction of right predictions, a hundred times faster than scikit-learn."""
    labels, predictions = _checked(labels, predictions)
    return float((labels == predictions).mean())


#: All metrics by name.
METRICS: dict[str, Metric] = {
    "accuracy": _accuracy,
    # Of class 1 of the classes 0 and 1; 0 if it neither occurs nor is predicted.
    "f1": _imported("sklearn.metrics", "f1_score", zero_division=0.0),
    # The mean over all classes that occur or are predicted.
    "macro_f1": _imported("sklearn.metrics", "f1_score", average="macro", zero_division=0.0),
    # Of two or more classes, -1 to 1; 0 if all labels or all predictions are the same class.
    "matthews": _imported("sklearn.metrics", "matthews_corrcoef", is_correlation=True),
    "pearson": _imported("scipy.stats", "pearsonr", is_correlation=True),
    # Of ranks; equal numbers have their mean rank.
    "spearman": _imported("scipy.stats", "spearmanr", is_correlation=True),
    "mean_squared_error": _imported("sklearn.metrics", "mean_squared_error"),  # less is better
}


def scores(names: Iterable[str], labels, predictions) -> dict[str, float]:
    """Returns the metrics of these names in `METRICS`, in this order."""
    return {name: METRICS[name](labels, predictions) for name in names}


def confusion_matrix(labels, predictions, num_classes: int) -> np.ndarray:
    """Counts the predictions (columns) for each label (rows): int64 [num_classes, num_classes]."""
    classes = np.arange(num_classes)
    import sklearn.metrics

    return sklearn.metrics.confusion_matrix(labels, predictions, labels=classes).astype(np.int64)


def bootstrap_interval(
    metric: Metric, labels, predictions, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Returns the 95 % range of a metric when the examples are resampled with replacement.

    The interval is of percentiles (Efron, 1979). It covers only the choice of examples, not the
    random seed of a training.

    `labels` and `predictions` are arrays of numbers or of anything else, [count, ...].
    """
    labels, predictions = _checked(labels, predictions)
    generator = np.random.default_rng(seed)
    values = []
    for _ in range(resamples):
        sample = generator.integers(len(labels), size=len(labels))
        values.append(metric(labels[sample], predictions[sample]))
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))


def paired_interval(metric: Metric, labels, predictions, others) -> Interval:
    """Returns the 95 % range of the difference of a metric between two lists of predictions.

    Both are of the same examples, so that good and bad luck are shared. For accuracy the interval
    is computed from the numbers of examples that one alone has right, and allows for few of them;
    for other metrics it is that of `bootstrap_interval`.

    Source:
        Agresti and Min, Statistics in Medicine 24, 2005, pages 729 to 740, "Wald+2".
    """
    labels, predictions = _checked(labels, predictions)
    if metric is _accuracy:
        gains = (predictions == labels) * 1 - (others == labels)
        count = len(gains) + 2
        mean, square = gains.sum() / count, (abs(gains).sum() + 1) / count
        error = 1.96 * math.sqrt((square - mean**2) / count)
        return Interval(float(mean - error), float(mean + error))

    def difference(labels, both):
        return metric(labels, both[:, 0]) - metric(labels, both[:, 1])

    return bootstrap_interval(difference, labels, np.stack([predictions, others], axis=1))


def score_texts(
    scores: Mapping[str, float], positive_class: str | None, number: Callable[[float], str]
) -> list[str]:
    """Returns scores with their names, that of F1 with its class, and counts as whole numbers."""
    texts = []
    for name, value in scores.items():
        is_count, is_of_a_class = name.endswith("_total"), name == "f1" and positive_class
        shown = f"{name} (of `{positive_class}`)" if is_of_a_class else name
        texts.append(f"{shown} {value:,.0f}" if is_count else f"{shown} {number(value)}")
    return texts


def thresholds_text(thresholds: Mapping[str, float]) -> str:
    """Returns thresholds by name in a line."""
    return ", ".join(f"{name} {value:.3g}" for name, value in thresholds.items())


def count_caution(count: int, metric: str, what: str = "development set") -> str | None:
    """Explains a score on very few examples, without the last full stop; None for enough of them.

    Args:
        count: Number of examples.
        metric: Name of the score.
        what: Names the set of examples.
    """
    if count >= FEW_EXAMPLES:
        return None
    examples = f"{count} example{'' if count == 1 else 's'}"
    return f"the {what} has only {examples}, which is too few for a reliable {metric}"


def _checked(labels, predictions):
    arrays = (np.asarray(values) for values in (labels, predictions))
    labels, predictions = (one.astype(float) if one.dtype.kind == "f" else one for one in arrays)
    if len(labels) != len(predictions) or not len(labels):
        raise InputError(
            "There must be one prediction for each label, and at least one. "
            f"Received: {len(labels)} labels, {len(predictions)} predictions."
        )
    return labels, predictions
