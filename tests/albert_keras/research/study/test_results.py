"""Means, spreads, noise and order of results."""

import math

import pytest

from albert_keras.research.study.config import HeldOutSet, Measure
from albert_keras.research.study.results import Cell, Column, column_of, count_in_order


def column(**cells):
    return Column("masked_lm", "masked LM", cells, 0.1)


def test_spread_is_the_standard_deviation_over_seeds():
    assert Cell((0.2, 0.4), 100).mean == pytest.approx(0.3)
    assert Cell((0.2, 0.4), 100).spread == pytest.approx(math.sqrt(0.02))
    assert Cell((0.2,), 100).spread is None


def test_with_one_seed_the_noise_is_binomial():
    found = column(a=Cell((0.5,), 400), b=Cell((0.6,), 400))
    expected = 1.96 * math.sqrt(0.5 * 0.5 / 400 + 0.6 * 0.4 / 400)
    assert found.margin("a", "b") == pytest.approx(expected)
    assert found.difference("b", "a") == pytest.approx(0.1)
    assert not found.is_noise("b", "a")
    assert column(a=Cell((0.5,), 40), b=Cell((0.6,), 40)).is_noise("a", "b")


def test_with_seeds_their_variance_is_added_with_the_quantile_of_student():
    found = column(a=Cell((0.50, 0.52), 10**9), b=Cell((0.60, 0.62), 10**9))
    # Two runs with two seeds: 2 degrees of freedom, variance 0.0002.
    assert found.margin("a", "b") == pytest.approx(4.3027 * math.sqrt(0.0002), rel=1e-4)


def test_a_model_without_head_has_no_difference():
    scores = {"sentence_accuracy": None, "sentences": 10, "chance": 0.5}
    trained = scores | {"sentence_accuracy": 0.9}
    results = {"none": [{"scores": {"sop": scores}}], "sop": [{"scores": {"sop": trained}}]}
    found = column_of("sop", HeldOutSet(title="SOP", score="sentence"), results)
    assert found.cells["none"] is None and found.cells["sop"].values == (0.9,)
    assert found.difference("sop", "none") is found.is_noise("sop", "none") is None
    assert found.floor == 0.5


def test_only_pairs_that_differ_count_for_the_order():
    found = column(a=Cell((0.1,), 10_000), b=Cell((0.5,), 10_000), c=Cell((0.501,), 10_000))
    published = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert count_in_order(found, Measure(title="x"), published) == (2, 2)
    lower = Measure(title="x", higher_is_better=False)
    assert count_in_order(found, lower, published) == (0, 2)
