"""What scoring takes during a training, so that the remaining time includes it."""

import contextlib
import time
from collections.abc import Iterator


class ScoringTime:
    """Measures the time of the scorings in a training, and estimates the time of the later ones.

    Args:
        every: Steps between two scorings; the last step is always scored.
        steps_per_scoring: How many training steps take as long as a scoring, as far as is known
            before the first one is measured.
        at_end: Number of scorings after the last step.
    """

    def __init__(self, every: int, steps_per_scoring: float, at_end: int = 0):
        self.seconds = 0.0  # all scorings so far
        self._every, self._steps_per_scoring, self._at_end = every, steps_per_scoring, at_end
        self._count = 0

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measures the block as a scoring."""
        started = time.monotonic()
        yield
        self.seconds += time.monotonic() - started
        self._count += 1

    def ahead(self, step: int, last_step: int, seconds_per_step: float) -> float:
        """Returns the seconds that the scorings after `step` will take."""
        each = self._steps_per_scoring * seconds_per_step
        if self._count:
            each = self.seconds / self._count
        number = self._at_end
        if step < last_step:
            number += 1 + (last_step - 1) // self._every - step // self._every
        return number * each
