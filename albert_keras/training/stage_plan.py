"""Which steps of a run belong to which of its stages. Plain Python."""

import bisect
import math
from collections.abc import Sequence

from data_pipeline.errors import InputError


def stage_ends(steps: int, shares: Sequence[float], multiple: int = 1) -> tuple[int, ...]:
    """Returns the last step of each stage.

    Args:
        steps: Length of the run, the end of the last stage.
        shares: Fraction of the steps of each stage; they sum to about 1.
        multiple: All ends but the last are multiples of it, and each stage has at least as many
            steps, apart from the last, which has at least one.

    Raises:
        InputError: If the run is too short for so many stages.
    """
    number = len(shares)
    if steps <= (number - 1) * multiple:
        raise InputError(
            f"`training.steps` must be more than {(number - 1) * multiple} for {number} stages"
            f"{f' and {multiple} steps per execution' if multiple > 1 else ''}. Received: {steps}."
        )
    total = math.fsum(shares)
    ends = [0]
    for done in range(1, number):
        planned = round(steps * math.fsum(shares[:done]) / total / multiple) * multiple
        later = (number - 1 - done) * multiple  # what the stages between this and the last need
        latest = (steps - 1 - later) // multiple * multiple
        ends.append(min(max(planned, ends[-1] + multiple), latest))
    return (*ends[1:], steps)


class StagePlan:
    """The stages of a run, whose ends a time budget moves as long as they lie ahead.

    Attributes:
        ends: Last step of each stage, as planned or, of finished stages, as it was.
    """

    def __init__(
        self,
        shares: Sequence[float],
        ends: Sequence[int],
        work: Sequence[float],  # positions of a step of each stage
    ):
        self._shares = tuple(share / math.fsum(shares) for share in shares)
        self.ends = list(ends)
        self._work = tuple(work)

    @classmethod
    def of_one(cls, steps: int) -> "StagePlan":
        """Returns the plan of a run without stages."""
        return cls((1.0,), (steps,), (1.0,))

    def __len__(self) -> int:
        return len(self.ends)

    def number_at(self, step: int) -> int:
        """Returns the stage, counted from 0, that the step after `step` steps belongs to."""
        return min(bisect.bisect_right(self.ends, step), len(self) - 1)

    def start_of(self, number: int) -> int:
        """Returns the number of steps before a stage."""
        return self.ends[number - 1] if number else 0

    def steps_ahead(self, step: int) -> float:
        """Returns how many steps like the last one take as long as all that remain."""
        current = self.number_at(max(step - 1, 0))
        ahead = float(self.ends[current] - step)
        for later in range(current + 1, len(self)):
            steps = self.ends[later] - self.start_of(later)
            ahead += steps * self._work[later] / self._work[current]
        return ahead

    def time_share(self, number: int) -> float:
        """Returns the fraction of a time budget that is used at the end of a stage."""
        return 1.0 if number == len(self) - 1 else math.fsum(self._shares[: number + 1])

    def move(self, number: int, end: int):
        """Changes the end of a stage, and moves the later ones with it."""
        by = end - self.ends[number]
        self.ends[number:] = [each + by for each in self.ends[number:]]
