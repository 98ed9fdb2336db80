"""Times of single rows on a machine whose speed changes."""

import itertools
import logging

import numpy as np
import pytest

from albert_keras.analysis.row_times import time_rows
from data_pipeline.progress import CountedProgress

#: Seconds of two rows by three functions on a quiet machine.
QUIET = np.array([[6.0, 3.0, 2.0], [6.0, 6.0, 1.0]]) / 1000


def measured(rounds, slowdown):
    """Times fake functions; `slowdown` says how many times as long the n-th call takes."""
    now, calls, count = [0.0], [], itertools.count()

    def fake(function):
        def run(row):
            calls.append((row, function))
            now[0] += QUIET[row, function] * slowdown(next(count))

        return run

    functions = [fake(function) for function in range(3)]
    progress = CountedProgress(logging.getLogger("tests"), "timing", 2 * (rounds + 1), "rows")
    return time_rows(functions, [0, 1], rounds, progress, lambda: now[0]), calls


def test_every_row_is_given_to_all_functions_in_turns():
    _, calls = measured(2, lambda call: 1)
    visits = [calls[start : start + 3] for start in range(0, len(calls), 3)]
    assert [{row for row, _ in visit} for visit in visits] == [{0}, {1}] * 3
    # The first function changes with the row and the round.
    assert [visit[0][1] for visit in visits] == [0, 1, 1, 2, 2, 0]
    assert all({function for _, function in visit} == {0, 1, 2} for visit in visits)


def test_times_are_those_of_the_rows():
    times, _ = measured(3, lambda call: 100 if call < 6 else 1)  # the first round does not count
    assert times.latency(1) == pytest.approx((4.5, 4.5, 3.75, 5.25))
    assert times.speedup(1) == pytest.approx((2 + 1) / 2)
    assert times.mean_speedup(1) == pytest.approx(6 / 4.5)
    assert times.speedup(2) == pytest.approx((3 + 6) / 2)


@pytest.mark.parametrize(
    "slowdown",
    [
        lambda call: 10 if call // 6 in (2, 5) else 1,  # two of seven rounds
        lambda call: 50 if call % 13 == 0 else 1,  # single calls
    ],
)
def test_noise_changes_neither_ratios_nor_times(slowdown):
    times, _ = measured(7, slowdown)
    assert times.latency(0).median == pytest.approx(6)
    assert times.latency(2).mean == pytest.approx(1.5)
    assert times.speedup(2) == pytest.approx(4.5)


def test_a_machine_that_becomes_slower_changes_no_ratio():
    times, _ = measured(7, lambda call: 2.0 ** (call // 3))  # from visit to visit
    assert times.speedup(1) == pytest.approx(1.5)
