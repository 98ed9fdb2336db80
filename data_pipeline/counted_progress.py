"""Progress of work whose amount is known: a log line every few seconds."""

import logging
import time

from data_pipeline.durations import format_duration

#: Seconds between lines; shorter work logs nothing.
_INTERVAL = 4


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
        self._logger, self._action, self._total, self._noun = logger, action, total, noun
        self._total_work = total if total_work is None else total_work
        self._done, self._work_done = 0, 0.0
        self._started = self._last_line = time.monotonic()

    def add(self, count: int = 1, work: float | None = None):
        """Counts things that are done, and logs a line if it is time for one."""
        self._done += count
        self._work_done += count if work is None else work
        now = time.monotonic()
        if now < self._last_line + _INTERVAL or self._done >= self._total or not self._work_done:
            return
        self._last_line = now
        left = (self._total_work / self._work_done - 1) * (now - self._started)
        self._logger.info(
            "%s: %s of %s %s, ETA %s",
            self._action,
            f"{self._done:,}",
            f"{self._total:,}",
            self._noun,
            format_duration(left),
        )
