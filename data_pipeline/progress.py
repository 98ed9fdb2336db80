"""Progress lines of long work: a bar, a count and the remaining time."""

import logging
import time
from collections.abc import Callable

from data_pipeline.durations import format_duration

_SECONDS_BETWEEN_LINES, _SECONDS_BETWEEN_TRANSIENT_LINES = 5, 0.5
_WIDTH = 20


class ProgressLines:
    """Logs a line from time to time.

    A line that will soon be replaced has the attribute `transient`, so that a terminal can
    overwrite it; other lines are for log files, and come every few seconds.
    """

    def __init__(self, logger: logging.Logger, transient: bool):
        self._logger, self._transient = logger, transient
        self._interval = _SECONDS_BETWEEN_TRANSIENT_LINES if transient else _SECONDS_BETWEEN_LINES
        self.started = self._last_line = time.monotonic()

    def restart(self) -> None:
        """Starts to measure the time of the next stage."""
        self.started = time.monotonic()

    def tick(self, line: Callable[[float], str]) -> None:
        """Logs `line(seconds since the start)` if it is time for a line."""
        now = time.monotonic()
        if now >= self._last_line + self._interval:
            self._last_line = now
            seconds = max(now - self.started, 1e-3)
            self._logger.info("%s", line(seconds), extra={"transient": self._transient})


class CountedProgress:
    """Logs how many of a known number of things are done, and the remaining time.

    Args:
        logger: Logger of the lines.
        action: str. What is done, such as "evaluating".
        total: int. Number of things.
        noun: str. What they are, in the plural.
        total_work: float or None. Sum of the `work` of all things, which the remaining time is
            estimated from; None if each of them takes equally long.

    Example:
        progress = CountedProgress(logger, "evaluating", 3242, "records")
        progress.add(64)  # may log "evaluating: 64 of 3,242 records, ETA 12 s"
    """

    def __init__(
        self,
        logger: logging.Logger,
        action: str,
        total: int,
        noun: str,
        total_work: float | None = None,
    ):
        self._action, self._total, self._noun = action, total, noun
        self._total_work = total if total_work is None else total_work
        self._done, self._work_done = 0, 0.0
        self._lines = ProgressLines(logger, transient=False)

    def add(self, count: int = 1, work: float | None = None) -> None:
        """Counts things that are done, and logs a line if it is time for one."""
        self._done += count
        self._work_done += count if work is None else work
        if self._done < self._total and self._work_done:
            self._lines.tick(self._line)

    def _line(self, seconds):
        eta = format_duration((self._total_work / self._work_done - 1) * seconds)
        return f"{self._action}: {self._done:,} of {self._total:,} {self._noun}, ETA {eta}"


def bar(fraction: float) -> str:
    """Returns a bar and a percentage, such as `[##########----------]  50%`."""
    filled = int(fraction * _WIDTH)
    return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {fraction:4.0%}"
