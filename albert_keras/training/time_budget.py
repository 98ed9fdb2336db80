"""Ends a training run when its time is over, with the learning rate at 0."""

import logging
import math
import time
from collections import deque

from tensorflow import keras

from albert_keras.optimization.schedules import WarmupPolynomialDecay
from albert_keras.training.stage_plan import StagePlan

logger = logging.getLogger(__name__)

#: Steps after the first one, which builds the graph, from which the speed can be estimated.
_FIRST_ESTIMATE = 10
#: Time reserved for the last save: this fraction of the budget, at most this many seconds.
_MARGIN_FRACTION, _LONGEST_MARGIN = 0.02, 5.0


class TimeBudget:
    """The seconds (float) a run may take in all its parts, and the seconds earlier parts took.

    `margin` is reserved for the last save: 2 % of the budget, at most 5 s.
    """

    def __init__(self, seconds, used=0.0):
        self.seconds, self.used = float(seconds), float(used)
        self.margin = min(_MARGIN_FRACTION * self.seconds, _LONGEST_MARGIN)

    @property
    def for_steps(self):
        """float. The seconds for steps, used ones included."""
        return self.seconds - self.margin

    def left(self, elapsed=0.0, share=1.0):
        """Returns the seconds left for steps, `elapsed` seconds after this part started.

        With a `share`, only the seconds until this fraction of the budget is used are counted.
        """
        return share * self.for_steps - self.used - elapsed

    def plan(self, step, steps_per_second, elapsed, share=1.0):
        """Returns the total number of steps that fit into the budget (int), at least `step` + 1.

        This part of the run has reached `step` after `elapsed` seconds. `share` is as in `left`.
        """
        return step + max(1, math.floor(self.left(elapsed, share) * steps_per_second))


class FollowBudget(keras.callbacks.Callback):
    """Plans the length of a run from its speed, so that schedule and time end together.

    The remaining time is assumed to be as fast as an equally long time just past: far from the end
    it includes saves and evaluations; near the end it is the time of the last steps. The plan
    is updated every few steps, and near the end after each step.

    If there are several stages, each ends in the same way when its share of the time is used. Until
    a later stage begins, its speed is estimated from the speed of the current stage and from the
    work of a step in both.

    It must be the last callback: those before it learn of a new last step one step ahead, so that
    they save and report there, and none after it may reset `model.stop_training`. Give `fit` more
    steps than will ever be done.
    """

    def __init__(
        self,
        budget: TimeBudget,
        schedule: WarmupPolynomialDecay,  # created with `adjustable=True`
        callbacks=(),  # their attribute `last_step` follows the plan
        every: int = 50,  # steps between plans
        first_step: int = 0,  # steps done before this `fit`
        clock=time.monotonic,
        plan: StagePlan | None = None,  # its ends follow the clock; None for a single stage
    ):
        super().__init__()
        self.budget, self.schedule, self.every = budget, schedule, every
        self.followers = tuple(callbacks)
        self.first_step = self.step = first_step
        self.last_step = schedule.num_steps  # planned to end the run
        self._plan = plan or StagePlan.of_one(self.last_step)
        self._clock = clock
        self._started = self._now = None  # seconds at the start of `fit` and after the newest step
        self._step_seconds = 0.0
        self._has_warned = self._is_planned = False
        self._marks = deque()  # (step, seconds), from the oldest that still matters

    def state(self):
        """Returns what `restore` needs: dict of `seconds_used` and `num_steps`.

        It does not read the clock, which several workers may do only together. Checkpoints are
        saved before this callback runs, so the step that is ending is assumed to last
        as long as the step before.
        """
        used = self.seconds_used
        if self._started is not None:
            used += self._step_seconds
        return {"seconds_used": used, "num_steps": self.last_step}

    @property
    def seconds(self) -> float:
        """The seconds that the run may take in all its parts."""
        return self.budget.seconds

    @property
    def seconds_used(self) -> float:
        """The seconds that were used until the newest step; several workers may read them."""
        return self.budget.used + (0.0 if self._started is None else self._elapsed())

    def restore(self, state):
        """Continues the budget of an interrupted run from the `state` saved with `first_step`."""
        self.budget.used = float(state["seconds_used"])
        self.last_step, self._is_planned = int(state["num_steps"]), True
        if self.last_step <= self.first_step and not self.is_over:  # the budget was enlarged
            self.last_step = self.budget.plan(self.first_step, self._average_speed(), 0.0)
        self._plan.ends[-1] = self.last_step

    @property
    def is_over(self):
        """bool. Whether a restored run has no time for one more step."""
        return self.budget.left() * self._average_speed() < 1

    def begin_stage(self, positions_per_step: int, flops_per_step: int):
        """Forgets the speed of the stage before."""
        self._marks.clear()

    def on_train_begin(self, logs=None):
        self._started = self._now = self._clock()
        self._set_last_step(self.last_step)

    def on_train_batch_end(self, batch, logs=None):
        # With several steps per execution `batch` is the last of them.
        previous, self.step = self.step, self.first_step + batch + 1
        stride = self.step - previous
        before, self._now = self._now, self._clock()
        self._step_seconds = self._now - before
        number = self._plan.number_at(previous)
        left = self.budget.left(self._elapsed(), self._plan.time_share(number))
        if left > 0 and not self._is_planned:
            self._keep_open(number, self.step + 2 * stride)
        if self.step >= self.last_step:
            logger.info("the time budget ends the run at step %d", self.step)
            self.model.stop_training = True
        elif self.step >= self._plan.ends[number]:  # `fit` continues with the next stage
            self._plan.move(number, self.step)
            self.model.stop_training = True
        elif left <= 0:
            self._plan.move(number, self.step + stride)
            self._set_last_step(self._plan.ends[-1])
        elif not self._marks:  # the first step includes the building of the graph
            self._marks.append((self.step, self._now))
        elif self._is_due(previous, number, left, self._step_seconds / stride):
            self._plan_from(number, left, stride)

    def _keep_open(self, number, end):
        """Moves the end of a stage if it is before `end`.

        The number of steps in the settings must not end a run before its speed is known.
        """
        if self._plan.ends[number] < end:
            self._plan.move(number, end)
            self._set_last_step(self._plan.ends[-1])

    def _is_due(self, previous, number, left, step_seconds):
        every = self.every
        if len(self._marks) == 1:  # no plan yet
            every = min(_FIRST_ESTIMATE, every)
            is_next = self.step - self._marks[0][0] >= every
        else:
            is_next = self.step // every > previous // every
        # Near the end: fewer steps or less time than until the next plan.
        steps = self._plan.ends[number] - self.step
        is_last = min(steps, left / max(step_seconds, 1e-9)) <= every
        return is_next or is_last

    def _plan_from(self, number, left, stride):
        self._is_planned = True
        self._marks.append((self.step, self._now))
        while len(self._marks) > 2 and self._now - self._marks[1][1] >= left:
            self._marks.popleft()
        first_step, first_seconds = self._marks[0]
        speed = (self.step - first_step) / max(self._now - first_seconds, 1e-9)
        share = self._plan.time_share(number)
        more = self.budget.plan(self.step, speed, self._elapsed(), share) - self.step
        end = self.step + max(more // stride, 1) * stride
        self._plan.plan_from(number, end, speed * self.budget.for_steps)
        self._set_last_step(self._plan.ends[-1])

    def _set_last_step(self, last_step):
        self.last_step = last_step
        for callback in self.followers:
            callback.last_step = last_step
        shortest = self.schedule.warmup_end
        if last_step < shortest and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "the time budget ends the run at step %d, within the warm-up of %d steps: "
                "choose fewer `optimizer.warmup_steps`",
                last_step,
                shortest,
            )
        self.schedule.set_num_steps(max(last_step, shortest))

    def _average_speed(self):
        return self.first_step / max(self.budget.used, 1e-9)

    def _elapsed(self):
        return self._now - self._started
