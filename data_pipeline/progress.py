"""Progress of long work: how much is done, how fast, the remaining time; and durations as text."""

import contextlib
import logging
import math
import re
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from data_pipeline.errors import InputError

_SECONDS_BETWEEN_LINES = 5

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in _SECONDS))


class State(NamedTuple):
    """How far work is: the attribute `progress` of its log records."""

    text: str  # a line for people
    action: str  # what is done, such as "evaluating"
    done: float
    total: float | None  # None if it is not known
    unit: str  # what is counted, in the plural
    rate: float  # units per second
    eta: float | None  # remaining seconds; None if they are not known

    def as_dict(self) -> dict[str, float | str | None]:
        """Returns what a program reads; the remaining time as `eta_seconds`."""
        values = self._asdict()
        values["eta_seconds"] = values.pop("eta")
        del values["text"]
        return values


def log_state(logger: logging.Logger, state: State) -> None:
    """Logs the text of a state; the record has the state as its attribute `progress`."""
    logger.info("%s", state.text, extra={"progress": state})


@contextlib.contextmanager
def lines_shown(verbose: int = 1) -> Iterator[None]:
    """Context in which the log lines of this project are printed, for notebooks and scripts."""
    if not verbose:
        yield
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    loggers = [logging.getLogger(name) for name in ("albert_keras", "data_pipeline")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


class CountedProgress:
    """Logs every few seconds how many things are done.

    Args:
        logger: Logger of the lines.
        action: str. What is done, such as "evaluating".
        total: int, float or None. Number of things, if it is known.
        noun: str. What they are, in the plural.

    Example:
        progress = CountedProgress(logger, "evaluating", 3242, "records")
        progress.add(64)  # may log "evaluating: 64 of 3,242 records, ETA 12 s"
    """

    def __init__(
        self,
        logger: logging.Logger,
        action: str,
        total: float | None,
        noun: str,
    ):
        self._logger = logger
        self._action = action
        self._total = total
        self._noun = noun
        self._done = 0.0 if isinstance(total, float) else 0
        self._started = self._last_line = time.monotonic()

    def add(self, count: float = 1) -> None:
        """Counts things that are done, and logs a line if it is time for one."""
        self._done += count
        if not self._done or (self._total is not None and self._done >= self._total):
            return
        now = time.monotonic()
        if now >= self._last_line + _SECONDS_BETWEEN_LINES:
            self._last_line = now
            log_state(self._logger, self._state(now - self._started))

    def _state(self, seconds):
        count = _number(self._done)
        eta = None
        remaining = ""
        if self._total is not None:
            count = f"{count} of {_number(self._total)}"
            eta = (self._total / self._done - 1) * seconds
            remaining = f", ETA {format_duration(eta)}"
        return State(
            text=f"{self._action}: {count} {self._noun}{remaining}",
            action=self._action,
            done=self._done,
            total=self._total,
            unit=self._noun,
            rate=self._done / max(seconds, 1e-3),
            eta=eta,
        )


def _number(value):
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def parse_duration(duration):
    """Reads a duration.

    Args:
        duration: str, int or float. Days, hours, minutes and seconds in this order, such as "8h",
            "90m", "1h30m", "2d" or "45s"; a bare number means seconds.

    Returns:
        float. Seconds.

    Raises:
        InputError: If it is not a duration, or not positive.
    """
    text = str(duration).strip().lower()
    found = _DURATION.fullmatch(f"{text}s" if re.fullmatch(_NUMBER, text) else text)
    values = zip(found.groups() if found else (), _SECONDS.values(), strict=False)
    seconds = sum(float(number) * unit for number, unit in values if number)
    if not 0 < seconds < math.inf:
        raise InputError(
            "A duration must be a positive number of seconds, or days, hours, minutes and "
            f'seconds such as "8h", "1h30m" or "2d". Received: {duration!r}.'
        )
    return seconds


def format_duration(seconds):
    """Formats a duration by its two largest units.

    Args:
        seconds: float. Negative values count as 0.

    Returns:
        str. Such as "0.35 s", "45 s", "9 min 58 s", "3 h 12 min" or "2 days 5 h".
    """
    if round(seconds) < 10:
        return f"{max(seconds, 0):.2g} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(round(minutes + seconds / 60), 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(round(hours + minutes / 60), 24)
    return f"{days:,} day{'s' if days > 1 else ''} {hours} h"
