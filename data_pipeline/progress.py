"""Progress lines of long work: a bar, a count and the remaining time."""

import logging
import time
from collections.abc import Callable

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


def bar(fraction: float) -> str:
    """Returns a bar and a percentage, such as `[##########----------]  50%`."""
    filled = int(fraction * _WIDTH)
    return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {fraction:4.0%}"
