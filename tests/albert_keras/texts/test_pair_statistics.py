"""Accuracies on minimal pairs and their intervals."""

import numpy as np
import pytest
import scipy.stats

from albert_keras.texts.minimal_pairs import MinimalPair
from albert_keras.texts.pair_accuracy import (
    accuracy_by_group,
    accuracy_of,
    mean_of_groups,
    means_by,
    wilson_interval,
)


@pytest.mark.parametrize("points, count", [(0, 1), (1, 1), (0, 200), (131, 200), (7, 9)])
def test_the_interval_is_that_of_wilson(points, count):
    expected = scipy.stats.binomtest(points, count).proportion_ci(0.95, "wilson")
    np.testing.assert_allclose(wilson_interval(points, count), expected, atol=1e-7)


def test_ties_count_one_half():
    found = accuracy_of(np.array([1.0, 0.0, -2.0, 0.0, 3.0, 0.0]))
    assert (found.num_pairs, found.num_ties, found.accuracy) == (6, 3, 3.5 / 6)
    assert found.interval == wilson_interval(3.5, 6)
    assert found.interval.low < wilson_interval(4, 6).low


def pair(group, field, term="t"):
    return MinimalPair("a", "b", group, field, term, "x.jsonl", 1)


def test_groups_have_equal_weights_in_the_mean():
    pairs = [pair("large", "syntax")] * 6 + [pair("small", "semantics")] * 2
    pairs += [pair("none", None, None)]
    differences = np.array([1, 1, 1, -1, 1, 1, -1, 0, 1.0])
    groups = accuracy_by_group(pairs, differences)
    shown = [(one.group, one.field, one.num_pairs, one.num_ties, one.accuracy) for one in groups]
    assert shown == [
        ("small", "semantics", 2, 1, 0.25),
        ("large", "syntax", 6, 0, 5 / 6),
        ("none", None, 1, 0, 1.0),
    ]
    mean = mean_of_groups(groups)
    assert (mean.num_groups, mean.accuracy) == (3, pytest.approx((0.25 + 5 / 6 + 1) / 3))
    assert accuracy_of(differences).accuracy == pytest.approx(6.5 / 9)
    fields = means_by(groups, "field")
    assert [(one.name, one.accuracy) for one in fields] == [("semantics", 0.25), ("syntax", 5 / 6)]
    assert fields[1].interval == pytest.approx(groups[1].interval)  # of one group it is its own
    assert [(one.name, one.num_groups) for one in means_by(groups, "term")] == [("t", 2)]


def test_the_interval_of_the_mean_covers_it_and_has_a_width_at_1():
    sizes, chances = (40, 60, 25), (0.55, 0.8, 0.97)
    pairs = [pair(str(n), "f") for n, size in enumerate(sizes) for _ in range(size)]
    likely = np.repeat(chances, sizes)
    generator, covered = np.random.default_rng(5), 0
    for _ in range(400):
        differences = np.where(generator.random(len(likely)) < likely, 1.0, -1.0)
        low, high = mean_of_groups(accuracy_by_group(pairs, differences)).interval
        covered += low <= np.mean(chances) <= high
    assert 0.92 < covered / 400 < 0.985
    perfect = mean_of_groups(accuracy_by_group(pairs, np.ones(len(pairs))))
    assert perfect.interval.low < perfect.accuracy == perfect.interval.high == 1.0
