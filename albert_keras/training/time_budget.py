"""Ends a training run when its time is over, with the learning rate at 0."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable

import keras

from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.training.run_callbacks import Progress

logger = logging.getLogger(__name__)

#: Fraction of the budget that is reserved for the last save.
_MARGIN_FRACTION = 0.02
#: The most seconds that are reserved for it.
_LONGEST_MARGIN = 5.0
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

    Args:
        seconds: The time that the run may take in all its parts.
        schedule: Created with `adjustable=True`.
        progress: The ends of its plan follow the clock.
        clock: Function that returns seconds.

    Attributes:
        num_steps: int. Steps of the whole run at its mean speed so far.
    """

    def __init__(
        self,
        seconds: float,
        schedule: WarmupPolynomialDecay,
        progress: Progress,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__()
        progress.seconds = float(seconds)
        self.schedule, self.progress = schedule, progress
        self.usable = progress.seconds - min(_MARGIN_FRACTION * seconds, _LONGEST_MARGIN)
        self.num_steps = schedule.num_steps
        self._clock = clock
        self._now = 0.0  # what the clock said after the newest step
        self._durations: deque[float] = deque(maxlen=_RECENT)  # of executions of this stage
        self._is_ending = self._has_warned = False  # whether the next execution ends the stage

    def state(self):
        """Returns what `restore` needs: dict of `seconds_used`; and `num_steps`, for reports.

        It does not read the clock, which several workers may do only together. Checkpoints are
        saved before this callback runs, so the step that is ending is assumed to last
        as long as the step before.
        """
        last = self._durations[-1] if self._durations else 0.0
        return {"seconds_used": self.progress.seconds_used + last, "num_steps": self.num_steps}

    def restore(self, state):
        """Continues the budget of an interrupted run from the `state` saved with `first_step`.

        The run is at its end if there is no time for one more step.
        """
        progress = self.progress
        used = progress.seconds_used = float(state["seconds_used"])
        if (self.usable - used) * progress.first_step < used:
            progress.last_step = progress.first_step
        elif progress.last_step <= progress.first_step:
            progress.last_step = progress.first_step + 1

    def begin_stage(self, positions_per_step: int):
        """Forgets the speed of the stage before."""
        self._durations.clear()
        self._is_ending = False

    def on_train_begin(self, logs=None):
        self._now = self._clock()
        self._tell()

    def on_train_batch_end(self, batch, logs=None):
        progress, plan = self.progress, self.progress.plan
        stride, number = progress.step - progress.before, plan.number_at(progress.before)
        now = self._clock()
        self._durations.append(now - self._now)
        progress.seconds_used += now - self._now
        self._now = now
        if self._is_ending:  # `fit` continues with the next stage
            if number == len(plan) - 1:
                logger.info("the time budget ends the run at step %d", progress.step)
            progress.stage_is_over = True
            return
        # The first execution of a stage builds the graph: alone, it is no speed.
        needed = min(self._durations) * min(len(self._durations), 2)
        left = plan.time_share(number) * self.usable - progress.seconds_used
        self._is_ending = left < needed
        end = progress.step + stride * (1 if self._is_ending else 2)
        if self._is_ending or plan.ends[number] < end:
            plan.move(number, end)
        self._tell()

    def _tell(self):
        """Tells the schedule how many steps are expected."""
        progress, plan = self.progress, self.progress.plan
        step, share = progress.step, progress.seconds_used / self.usable
        if self._is_ending and plan.number_at(step) == len(plan) - 1:
            self.num_steps = progress.last_step
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
