"""The clock of a training, and the points of its curve."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger(__name__)

#: When the held-out loss is scored, as fractions of the training time: 0.5 to 30 of 30 minutes.
MARKS = tuple(minutes / 30 for minutes in (0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30))
#: Warm-up of the peer, as a fraction of the training time after the first update; as in RoBERTa.
WARM_UP = 0.06


class Point(NamedTuple):
    """A point of a curve."""

    seconds: float  #: Of training.
    updates: int
    loss: float  #: On the held-out records, nats per masked token.
    accuracy: float  #: Of masked tokens.


class Recorder:
    """Measures the training time, and scores the model at the marks.

    The clock runs from `start`, and not while the model is scored.

    Args:
        seconds: Training time, the first update included.
        score: Returns loss and accuracy on the held-out records.
        now: Returns seconds; for tests.
    """

    def __init__(
        self,
        seconds: float,
        score: Callable[[], tuple[float, float]],
        now: Callable[[], float] = time.perf_counter,
    ):
        self.updates = 0
        self.points: list[Point] = []
        self._training_time, self._score, self._now = seconds, score, now
        self._marks = [fraction * seconds for fraction in MARKS]
        self._started: float | None = None
        self._excluded = 0.0  # seconds spent scoring
        self._first = self._latest = 0.0  # when the first and the newest update ended

    def start(self):
        """Starts the clock, unless it runs already."""
        if self._started is None:
            self._started = self._now()

    def seconds(self) -> float:
        """Returns the seconds of training so far; 0 before the start."""
        return 0.0 if self._started is None else self._now() - self._started - self._excluded

    def add_updates(self, number: int = 1):
        """Counts updates that have just been made, and scores the model if a mark is reached."""
        self.updates += number
        self._latest = self.seconds()
        self._first = self._first or self._latest
        if self._marks and self._latest >= self._marks[0]:
            self._marks = [mark for mark in self._marks if mark > self._latest]
            self._add_point()

    def end(self) -> list[Point]:
        """Scores the model after its last update, and returns the points."""
        if not self.points or self.points[-1].updates != self.updates:
            self._add_point()
        return self.points

    @property
    def is_over(self) -> bool:
        """Whether the training time is over."""
        return self.seconds() >= self._training_time

    def rate_factor(self) -> float:
        """Returns the usual schedule by time: linear warm-up, then linear decay to 0 at the end.

        The first update, which compiles, is left out, so that it does not shorten the warm-up.
        """
        share = (self.seconds() - self._first) / max(self._training_time - self._first, 1e-9)
        return max(min(share / WARM_UP, (1 - share) / (1 - WARM_UP)), 1e-3)

    def _add_point(self):
        begun = self._now()
        loss, accuracy = self._score()
        self.points.append(Point(self._latest, self.updates, float(loss), float(accuracy)))
        minutes = self._latest / 60
        logger.info("%.2f min, update %d, held-out loss %.3f", minutes, self.updates, loss)
        self._excluded += self._now() - begun
