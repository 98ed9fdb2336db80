"""Times of single rows that can be compared on a machine that is not quiet."""

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.progress import CountedProgress


class Latency(NamedTuple):
    """The time of single rows, in milliseconds, over several rows."""

    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float


class RowTimes:
    """Times of the same rows by several functions; the others are compared with the first one.

    Args:
        seconds: float [rounds, N, functions]. As measured by `time_rows`.
    """

    def __init__(self, seconds: np.ndarray):
        self._seconds = seconds
        self._rows = np.median(seconds, axis=0)  # [N, functions]

    def latency(self, function: int) -> Latency:
        """Returns the time of a row by a function; each row counts with its median over rounds."""
        times = 1000 * self._rows[:, function]
        lower, median, upper = np.percentile(times, [25, 50, 75])
        return Latency(float(times.mean()), float(median), float(lower), float(upper))

    def speedup(self, function: int) -> float:
        """Returns how many times as fast as the first function a typical row is.

        It is the median over the ratios of the rows, and the ratio of a row is the median over the
        rounds. Both times of a ratio are measured directly after each other, so whatever slows the
        machine down for longer than both measurements cancels out.
        """
        ratios = np.median(self._seconds[:, :, 0] / self._seconds[:, :, function], axis=0)
        return float(np.median(ratios))

    def mean_speedup(self, function: int) -> float:
        """Returns the mean time of the first function, divided by the mean time of another one."""
        return float(self._rows[:, 0].mean() / self._rows[:, function].mean())


def time_rows(
    functions: Sequence[Callable[[Any], Any]],
    rows: Sequence[Any],
    rounds: int,
    progress: CountedProgress,
    clock: Callable[[], float] = time.perf_counter,
) -> RowTimes:
    """Times functions on rows in turns, so that noise of the machine affects all of them alike.

    In each round every row is given to all functions, directly after each other. The function that
    comes first changes from row to row and from round to round. A round before the first one, which
    is slower, does not count.

    Args:
        functions: Each is called with a row, and returns once its result is there.
        rows: What the functions take.
        rounds: How often each function is timed on each row.
        progress: Counts rows in `rounds + 1` rounds.
        clock: Returns seconds.
    """
    seconds = np.zeros([rounds + 1, len(rows), len(functions)])
    for turn in range(rounds + 1):
        for number, row in enumerate(rows):
            for place in range(len(functions)):
                function = (place + number + turn) % len(functions)
                started = clock()
                functions[function](row)
                seconds[turn, number, function] = clock() - started
            progress.add(1)
    return RowTimes(seconds[1:])
