"""The work of a contestant: its settings, its clock, and the points of its curve."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

logger = logging.getLogger(__name__)

#: When the held-out loss is scored, as fractions of the training time: 0.5 to 30 of 30 minutes.
MARKS = tuple(minutes / 30 for minutes in (0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 25, 30))
#: Warm-up of the peers, as a fraction of the training time after the first update; as in RoBERTa.
WARM_UP = 0.06


class Job(NamedTuple):
    """What the process of a contestant is given."""

    label: str
    module: str  #: Its trainer, in `tests.benchmarks.learning`.
    records: str  #: Folder of training records.
    eval_data: str  #: Folder of held-out records.
    rate: float  #: Peak of the learning rate.
    settings: dict  #: Of the trainer.
    seconds: float  #: Training time, the first update included.
    seed: int
    threads: int
    precision: str  #: "float32" or "mixed_bfloat16".


class Recorder:
    """Measures the training time, and scores the model at the marks of a job.

    The clock runs from `start`, and not while the model is scored.

    Args:
        seconds: Training time, the first update included.
        score: Returns loss and accuracy on the held-out records.
        positions_per_update: Positions of a training batch, B · S.
        now: Returns seconds; for tests.
    """

    def __init__(
        self,
        seconds: float,
        score: Callable[[], tuple[float, float]],
        positions_per_update: int = 0,
        now: Callable[[], float] = time.perf_counter,
    ):
        self.updates = self.positions = 0
        #: May be changed between two updates.
        self.positions_per_update = positions_per_update
        #: Seconds of the first update, which compiles.
        self.first_update: float | None = None
        #: dicts of `seconds` (of training), `updates`, `positions` (seen in training, padding
        #: included), `loss` (nats per masked token) and `accuracy`.
        self.points: list[dict] = []
        self._training_time, self._score, self._now = seconds, score, now
        self._marks = [fraction * seconds for fraction in MARKS]
        self._started = self._paused = None  # readings of `now`
        self._excluded = 0.0  # seconds spent scoring
        self._previous = self._last_update = 0.0  # the time at the last update, and its duration

    def start(self):
        """Starts the clock, unless it runs already."""
        if self._started is None:
            self._started = self._now()

    def seconds(self) -> float:
        """Returns the seconds of training so far; 0 before the start."""
        if self._started is None:
            return 0.0
        now = self._now() if self._paused is None else self._paused
        return now - self._started - self._excluded

    def add_updates(self, number: int = 1):
        """Counts updates that have just been made, and scores the model if a mark is reached."""
        self.updates += number
        self.positions += number * self.positions_per_update
        elapsed = self.seconds()
        self._last_update, self._previous = elapsed - self._previous, elapsed
        if self.first_update is None:
            self.first_update = elapsed
        if self._marks and elapsed >= self._marks[0]:
            self._marks = [mark for mark in self._marks if mark > elapsed]
            self._add_point()

    @property
    def is_over(self) -> bool:
        """Whether another update would end after the training time."""
        # The first update took longer than the next one will, because it compiled.
        expected = self._last_update if self.updates > 1 else 0.0
        return self.seconds() + expected >= self._training_time

    def rate_factor(self) -> float:
        """Returns the usual schedule by time: linear warm-up, then linear decay to 0 at the end.

        The first update, which compiles, is left out, so that it does not shorten the warm-up.
        """
        first = self.first_update or 0.0
        share = (self.seconds() - first) / max(self._training_time - first, 1e-9)
        return max(min(share / WARM_UP, (1 - share) / (1 - WARM_UP)), 1e-3)

    def end(self, facts: dict) -> dict:
        """Scores the model after its last update; returns dict with `points` and `facts`."""
        if not self.points or self.points[-1]["updates"] != self.updates:
            self._add_point()
        return {
            "points": self.points,
            "facts": {"first_update_seconds": self.first_update, **facts},
        }

    def _add_point(self):
        self._paused = self._now()
        loss, accuracy = self._score()
        self.points.append(
            {
                "seconds": self._previous,  # without the last save, which follows the update
                "updates": self.updates,
                "positions": self.positions,
                "loss": float(loss),
                "accuracy": float(accuracy),
            }
        )
        minutes = self._previous / 60
        logger.info("%.2f min, update %d, held-out loss %.3f", minutes, self.updates, loss)
        self._excluded += self._now() - self._paused
        self._paused = None
