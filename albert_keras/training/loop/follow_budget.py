"""Lets a training run end when its time is over, the learning rate at 0."""

import logging
import time
from collections import deque

from tensorflow import keras

logger = logging.getLogger(__name__)

#: Steps behind the first one, which builds the graph, after which speed is known well enough.
_FIRST_ESTIMATE = 10


class FollowBudget(keras.callbacks.Callback):
    """Plans the length of a run by its speed, so that schedule and time end together.

    The speed of the time that is left is taken to be that of the same time just past: far from the
    end, saves and evaluations count in; near it, the last steps alone. The plan is made anew each
    so many steps, in the last stretch at each one.

    It belongs at the end of the list of callbacks: those before it hear of a new last step one
    step ahead, so that they save and report there, and nobody behind it may set
    `model.stop_training` back. `fit` needs more steps than ever will be done.

    Args:
        budget: TimeBudget.
        schedule: WarmupPolynomialDecay, made with `adjustable=True`.
        callbacks: sequence of Callback. Their attribute `last_step` follows the plan.
        every: int. Steps between plans.
        first_step: int. Steps done before this `fit`.
        clock: callable. Returns seconds.

    Attributes:
        step: int. Steps done.
        last_step: int. The step that is to end the run.
    """

    def __init__(
        self, budget, schedule, callbacks=(), every=50, first_step=0, clock=time.monotonic
    ):
        super().__init__()
        self.budget, self.schedule, self.every = budget, schedule, every
        self.followers = tuple(callbacks)
        self.first_step = self.step = first_step
        self.last_step = schedule.num_steps
        self._clock = clock
        self._begun = self._now = None  # seconds at the start of `fit` and after the newest step
        self._duration = 0.0
        self._has_warned = False
        self._marks = deque()  # (step, seconds), from the oldest that still matters

    def state(self):
        """Returns what `restore` needs to go on: dict of `seconds_used` and `num_steps`.

        It reads no clock, which several workers may do only together; whoever saves does so in
        front of this callback, and so the step that is ending counts as long as the one before.
        """
        used = self.budget.used
        if self._begun is not None:
            used += self._elapsed() + self._duration
        return {"seconds_used": used, "num_steps": self.last_step}

    def restore(self, state):
        """Goes on with the budget of an interrupted run; call it before `fit`.

        Args:
            state: dict. What `state` returned when `first_step` was saved.
        """
        self.budget.used = float(state["seconds_used"])
        self.last_step = int(state["num_steps"])
        if self.last_step <= self.first_step and not self.is_over:  # enlarged since it was spent
            self.last_step = self.budget.plan(self.first_step, self._average_speed(), 0.0)

    @property
    def is_over(self):
        """bool. Whether a run that was restored has no time for one more step."""
        return self.budget.left() * self._average_speed() < 1

    def on_train_begin(self, logs=None):
        self._begun = self._now = self._clock()
        self._set(self.last_step)

    def on_train_batch_end(self, batch, logs=None):
        # With several steps per execution `batch` is the last of them.
        previous, self.step = self.step, self.first_step + batch + 1
        stride = self.step - previous
        before, self._now = self._now, self._clock()
        self._duration = self._now - before
        if self.step >= self.last_step:
            logger.info("the time budget ends the run at step %d", self.step)
            self.model.stop_training = True
        elif self._left() <= 0:
            self._set(self.step + stride)
        elif not self._marks:  # the first step holds the building of the graph
            self._marks.append((self.step, self._now))
        elif self._is_due(previous, self._duration / stride):
            self._plan(stride)

    def _is_due(self, previous, step_seconds):
        every = self.every
        if len(self._marks) == 1:  # no plan yet
            every = min(_FIRST_ESTIMATE, every)
            is_next = self.step - self._marks[0][0] >= every
        else:
            is_next = self.step // every > previous // every
        # The last stretch: fewer steps or less time than until the next plan.
        is_last = min(self.last_step - self.step, self._left() / max(step_seconds, 1e-9)) <= every
        return is_next or is_last

    def _plan(self, stride):
        self._marks.append((self.step, self._now))
        while len(self._marks) > 2 and self._now - self._marks[1][1] >= self._left():
            self._marks.popleft()
        first, began = self._marks[0]
        speed = (self.step - first) / max(self._now - began, 1e-9)
        more = self.budget.plan(self.step, speed, self._elapsed()) - self.step
        self._set(self.step + max(more // stride, 1) * stride)

    def _set(self, last_step):
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
        return self._now - self._begun

    def _left(self):
        return self.budget.left(self._elapsed())
