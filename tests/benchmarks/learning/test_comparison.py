"""Times to a loss are read from curves, and the ratio is the one to the best peer."""

import math

import pytest

from tests.benchmarks.learning.comparison import best_of, compare, time_to_loss


def points(*pairs):
    return [{"seconds": seconds, "loss": loss} for seconds, loss in pairs]


def result(label, peer, *rounds):
    return {
        "label": label,
        "peer": peer,
        "rounds": {number: {"points": curve} for number, curve in enumerate(rounds, start=1)},
    }


def test_the_time_is_linear_between_two_points():
    curve = points((10, 8.0), (20, 6.0), (40, 5.0))
    assert time_to_loss(curve, 7.0) == 15
    assert time_to_loss(curve, 5.25) == 35
    assert time_to_loss(curve, 6.0) == 20
    assert time_to_loss(curve, 9.0) == 10  # an upper bound: there is no earlier point
    assert time_to_loss(curve, 4.9) is None


def test_the_first_crossing_counts_if_the_loss_rises_again():
    assert time_to_loss(points((10, 8.0), (20, 6.0), (30, 7.0), (40, 5.0)), 6.5) == 17.5


def test_the_best_rate_of_the_best_peer_is_compared_with_ours():
    results = [
        result("ours", "ours", points((10, 7.0), (20, 5.0), (40, 4.0))),
        result("a, 1", "a", points((20, 8.0), (40, 7.0))),
        result("a, 2", "a", points((20, 7.0), (40, 6.0))),
        result("a, 3", "a", points((20, math.nan), (40, math.nan))),
        result("b, 1", "b", points((20, 8.0), (40, 6.5))),
    ]
    assert best_of(results[1:], 1)["label"] == "a, 2"
    found = compare(results, 40)
    (only,) = found["rounds"]
    assert (only["best_peer"], only["loss"]) == ("a, 2", 6.0)
    assert only["times"] == {"ours": 15, "a, 1": None, "a, 2": 40, "a, 3": None, "b, 1": None}
    assert found["ratio"]["median"] == only["ratio"] == pytest.approx(40 / 15)
    assert found["best_rates"] == {"a": "a, 2", "b": "b, 1"}


def test_each_round_has_its_own_best_peer_and_the_median_counts():
    ours = points((10, 6.0), (40, 3.0))
    found = compare(
        [
            result("ours", "ours", ours, ours, ours),
            result("a", "a", points((40, 5.0)), points((40, 4.0)), points((40, 4.0))),
            result("b", "b", points((40, 5.5)), points((40, 6.0)), points((40, 3.0))),
        ],
        40,
    )
    assert [each["best_peer"] for each in found["rounds"]] == ["a", "a", "b"]
    assert found["ratio"] == {"median": pytest.approx(40 / 30), "low": 1, "high": 2}


@pytest.mark.parametrize("ours", [points((40, 6.5)), points((40, math.nan))])
def test_there_is_no_ratio_if_ours_does_not_reach_the_loss(ours):
    found = compare([result("ours", "ours", ours), result("a", "a", points((40, 6.0)))], 40)
    assert found["ratio"] is None


def test_there_is_no_ratio_without_a_peer():
    found = compare([result("ours", "ours", points((40, 6.5))), result("a", "a")], 40)
    assert found == {"rounds": [], "ratio": None, "best_rates": {}}
