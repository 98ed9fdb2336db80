"""Ends a training run when its time is over, with the learning rate at 0."""

import logging
import math
import time
from collections import deque

import keras

from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.training.run_callbacks import Progress
from albert_keras.training.stage_plan import StagePlan

logger = logging.getLogger(__name__)

#: Time reserved for the last save: this fraction of the budget, at most this many seconds.
_MARGIN_FRACTION, _LONGEST_MARGIN = 0.02, 5.0
#: The next execution is expected to take as long as the fastest of so many: others also saved or
#: scored the model.
_RECENT = 5
#: Fraction of the time from which the number of steps is known well enough for a warning.
_IS_KNOWN = 0.1


class FollowBudget(keras.callbacks.Callback):
    """Ends a run, and each of its stages, when its share of the time is used.

    The learning rate follows the clock: the schedule is given the number of steps that the run
    would have at its mean speed so far, so that the fraction of its steps that are done is the
    fraction of the time that is used, whatever the speed is later. 2 % of the time, at most 5 s,
    are reserved for the last save.

    It must be the last callback: those before it learn of the last step one execution ahead, so
    that they save and report there. Give `fit` more steps than will ever be done.

    Attributes:
        seconds: float. The time that the run may take in all its parts.
        last_step: int. The end of the last stage; not before it is known that it must end.
        num_steps: int. Steps of the whole run at its mean speed so far.
    """

    def __init__(
        self,
        seconds: float,
        schedule: WarmupPolynomialDecay,  # created with `adjustable=True`
        progress: Progress,  # its `last_step` follows the clock
        clock=time.monotonic,
        plan: StagePlan | None = None,  # its ends follow the clock; None for a single stage
    ):
        super().__init__()
        self.seconds, self.schedule, self.progress = float(seconds), schedule, progress
        self.margin = min(_MARGIN_FRACTION * self.seconds, _LONGEST_MARGIN)
        self.num_steps = schedule.num_steps
        self._plan = plan or StagePlan.of_one(schedule.num_steps)
        self._clock, self._used_before = clock, 0.0
        self._started: float | None = None  # seconds at the start of `fit`
        self._now = 0.0  # seconds after the newest step
        self._durations: deque[float] = deque(maxlen=_RECENT)  # of executions of this stage
        self._is_ending = self._has_warned = False  # whether the next execution ends the stage

    @property
    def last_step(self) -> int:
        return self._plan.ends[-1]

    @property
    def seconds_used(self) -> float:
        """The seconds that were used until the newest step; several workers may read them."""
        return self._used_before + (0.0 if self._started is None else self._now - self._started)

    def state(self):
        """Returns what `restore` needs: dict of `seconds_used`; and `num_steps`, for reports.

        It does not read the clock, which several workers may do only together. Checkpoints are
        saved before this callback runs, so the step that is ending is assumed to last
        as long as the step before.
        """
        last = self._durations[-1] if self._durations else 0.0
        return {"seconds_used": self.seconds_used + last, "num_steps": self.num_steps}

    def restore(self, state):
        """Continues the budget of an interrupted run from the `state` saved with `first_step`."""
        self._used_before = float(state["seconds_used"])
        first_step = self.progress.first_step
        if not self.is_over and self.last_step <= first_step:  # the budget was enlarged
            self._plan.move(len(self._plan) - 1, first_step + 1)

    @property
    def is_over(self) -> bool:
        """Whether a restored run has no time for one more step."""
        return self._left(len(self._plan) - 1) * self.progress.first_step < self._used_before

    def begin_stage(self, positions_per_step: int, flops_per_step: int):
        """Forgets the speed of the stage before."""
        self._durations.clear()
        self._is_ending = False

    def on_train_begin(self, logs=None):
        self._started = self._now = self._clock()
        self._tell()

    def on_train_batch_end(self, batch, logs=None):
        previous, step = self.progress.before, self.progress.step
        stride = step - previous
        before, self._now = self._now, self._clock()
        self._durations.append(self._now - before)
        number = self._plan.number_at(previous)
        if self._is_ending:  # `fit` continues with the next stage
            if number == len(self._plan) - 1:
                logger.info("the time budget ends the run at step %d", step)
            self.progress.stage_is_over = True
            return
        # The first execution of a stage builds the graph: alone, it is no speed.
        needed = min(self._durations) * min(len(self._durations), 2)
        self._is_ending = self._left(number) < needed
        end = step + stride * (1 if self._is_ending else 2)
        if self._is_ending or self._plan.ends[number] < end:
            self._plan.move(number, end)
        self._tell()

    def _left(self, number):
        """Returns the seconds until a stage must end."""
        return self._plan.time_share(number) * (self.seconds - self.margin) - self.seconds_used

    def _tell(self):
        """Tells the schedule and the other callbacks how many steps are expected."""
        step, self.progress.last_step = self.progress.step, self.last_step
        share = self.seconds_used / (self.seconds - self.margin)
        if self._is_ending and self._plan.number_at(step) == len(self._plan) - 1:
            self.num_steps = self.last_step
        elif step and share > 0:
            self.num_steps = max(math.ceil(step / share), step + 1)
        shortest = self.schedule.warmup_end
        if self.num_steps < shortest and share > _IS_KNOWN and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the time budget ends the run at about step %d, within the warm-up of %d steps: "
                "choose fewer `optimizer.warmup_steps`",
                self.num_steps,
                shortest,
            )
        self.schedule.set_num_steps(max(self.num_steps, shortest))
