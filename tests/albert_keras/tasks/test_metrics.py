import warnings

import numpy as np
import pytest

from albert_keras.tasks.metrics import (
    METRICS,
    Interval,
    bootstrap_interval,
    paired_interval,
    score_texts,
    thresholds_text,
)
from data_pipeline.errors import InputError


@pytest.fixture
def classes():
    """Returns labels and predictions of two classes, 80 % right."""
    generator = np.random.default_rng(1)
    labels = generator.integers(2, size=500)
    return labels, np.where(generator.random(500) < 0.8, labels, 1 - labels)


@pytest.mark.parametrize(
    "metric, labels, predictions",
    [
        ("f1", [0, 0], [0, 0]),
        ("matthews", [0, 1], [1, 1]),
        ("matthews", [1, 1], [1, 1]),
        ("pearson", [1.0, 2.0], [3.0, 3.0]),
        ("spearman", [1.0], [1.0]),
    ],
)
def test_what_is_undefined_is_zero_without_a_warning(metric, labels, predictions):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert METRICS[metric](labels, predictions) == 0.0


def test_the_bootstrap_repeats_with_its_seed_and_takes_any_metric(classes):
    accuracy = METRICS["accuracy"]
    first = bootstrap_interval(accuracy, *classes, resamples=50, seed=3)
    assert first == bootstrap_interval(accuracy, *classes, resamples=50, seed=3)
    assert first != bootstrap_interval(accuracy, *classes, resamples=50, seed=4)
    assert first.low < accuracy(*classes) < first.high

    def exact(labels, predictions):
        return np.mean([label == given for label, given in zip(labels, predictions, strict=True)])

    assert bootstrap_interval(exact, ["a", "b"], ["a", "b"], resamples=9) == Interval(1.0, 1.0)
    with pytest.raises(InputError, match="Received: 1 labels, 2 predictions"):
        bootstrap_interval(exact, ["a"], ["a", "b"])


def test_scores_are_shown_in_a_line():
    scores = {"total": 30, "HasAns_total": 1404, "f1_a": 0.25}
    assert score_texts(scores, None, str) == ["total 30", "HasAns_total 1,404", "f1_a 0.25"]
    assert thresholds_text({"a": 0.25, "b": 1 / 3}) == "a 0.25, b 0.333"


def table(both, first, second, none):
    """Returns labels, and predictions that are right together as often as a table says."""
    is_right = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], [both, first, second, none], axis=0)
    return np.ones(len(is_right), int), *is_right.T


@pytest.mark.parametrize(
    "counts, interval",
    [
        ((36, 12, 2, 0), (0.0560, 0.3286)),
        ((36, 4, 0, 0), (-0.0051, 0.1955)),  # as the exact test, 12 %, which resampling misses
        ((36, 0, 0, 4), (-0.0467, 0.0467)),
    ],
)
def test_the_interval_of_two_accuracies_counts_the_rows_that_one_alone_has_right(counts, interval):
    """Computed by hand: (b - c) / (n + 2) and 1.96 times the root of its variance."""
    found = paired_interval(METRICS["accuracy"], *table(*counts))
    assert found == pytest.approx(interval, abs=1e-4)
    swapped = paired_interval(METRICS["accuracy"], *table(*counts)[::2], table(*counts)[1])
    assert swapped == pytest.approx((-interval[1], -interval[0]), abs=1e-4)


def test_what_two_models_share_does_not_widen_the_interval_of_their_difference():
    labels = np.linspace(0, 1, 400)
    noise = np.random.default_rng(0).normal(size=(2, 400))
    first = labels + 0.5 * noise[0]
    second = first + 0.1 * noise[1]
    low, high = paired_interval(METRICS["pearson"], labels, first, second)
    intervals = (bootstrap_interval(METRICS["pearson"], labels, one) for one in (first, second))
    assert high - low < max(top - bottom for bottom, top in intervals) / 2
    assert (low, high) == paired_interval(METRICS["pearson"], labels, first, second)
