"""What the callbacks of a run know of each other, and several calls of `fit` as a single one."""

import math
from collections.abc import Sequence
from typing import Any

import keras

from albert_keras.training.stage_plan import StagePlan
from data_pipeline.errors import InputError

#: Callbacks of Keras that cannot work in a run, and what takes their place.
_REFUSED = {
    "BaseLogger": "the logs of an epoch are means already",
    "BackupAndRestore": "a run saves checkpoints and resumes by itself",
    "LearningRateScheduler": "the learning rate follows `optimizer` in the settings",
    "ReduceLROnPlateau": "the learning rate follows `optimizer` in the settings",
    "TerminateOnNaN": "updates that are not finite are skipped, and ten of them end the run",
    "ProgbarLogger": "`pretrain(verbose=1)` shows the progress",
}


class Progress:
    """How far a run is and what ends it, the same object for all callbacks of the run.

    No callback sets `model.stop_training`. It changes `last_step`, or sets `stop_soon` or
    `stage_is_over`; `SaveCheckpoints` turns the `stop_soon` of any worker into `is_stopping` on all
    of them; and `RunCallbacks`, which counts the steps, ends the `fit` of Keras.

    Attributes:
        first_step: int. Steps done before this process.
        plan: StagePlan. The steps of each stage, a single one unless `Stages` have another plan.
        seconds: float or None. The time that the run may take; None if its steps end it.
        seconds_used: float. The time that was used until the newest step, if it is limited.
        limit: int or float. The step that ends this call, though the run may have more.
        step: int. Steps done; several, if one execution makes several steps, since `before`.
        save_soon: bool. Whether a callback asks for a checkpoint at the end of this execution.
        stop_soon: bool. Whether a callback asks to save and to end the run, as a signal does.
        is_stopping: bool. Whether the run is saved and ends now, as all workers have agreed.
        stage_is_over: bool. Whether the stage ends now because its time is used.
        line: dict. The newest report in the log; empty until there is one in this process.
        results: dict. The newest scores on held-out records; empty until there are any.
    """

    def __init__(self, first_step: int, last_step: int):
        self.first_step = self.before = self.step = first_step
        self.plan = StagePlan.of_one(last_step)
        self.seconds: float | None = None
        self.seconds_used = 0.0
        self.limit = math.inf
        self.save_soon = self.stop_soon = False
        self.is_stopping = self.stage_is_over = False
        self.line: dict[str, Any] = {}
        self.results: dict[str, float] = {}

    def reach(self, step: int):
        """Notes that an execution has ended with a step."""
        self.before, self.step = self.step, step

    @property
    def last_step(self) -> int:
        """int. The step that ends the run; callbacks may change it during training."""
        return self.plan.ends[-1]

    @last_step.setter
    def last_step(self, step: int):
        self.plan.ends[-1] = step

    @property
    def end(self):
        """int. The step that ends this call, as far as is known now."""
        return min(self.last_step, self.limit)

    def is_at(self, every: int) -> bool:
        """Returns whether the newest execution reached or passed a multiple of `every`, or the end
        of the run.
        """
        return self.step // every > self.before // every or self.step >= self.last_step

    def logs(self) -> dict[str, Any]:
        """Returns the means of the newest report, and the newest scores as `val_loss` and so on."""
        means = {name: value for name, value in self.line.items() if value is not None}
        means.pop("step", None)
        return means | {f"val_{name}": value for name, value in self.results.items()}


class RunCallbacks(keras.callbacks.Callback):
    """Calls the callbacks of a run in all calls of `fit`, one per stage, as if they were one call.

    For all of them, training begins and ends only once, and batches are counted across all calls.
    The callbacks of a user see one epoch for each interval between two evaluations: at its end they
    receive the means and scores of `Progress.logs`. If one of them sets `model.stop_training`, as
    callbacks of Keras do, the run is saved and ends.

    Args:
        progress: Progress. Counts the steps before any callback sees them.
        before, after: Callbacks that receive no epochs; a method `begin_stage` is called before
            each stage.
        given: Callbacks of the user, called between these two.
        every: Steps between two evaluations.
    """

    def __init__(
        self,
        progress: Progress,
        before: Sequence[keras.callbacks.Callback],
        given: Sequence[keras.callbacks.Callback],
        after: Sequence[keras.callbacks.Callback],
        every: int,
    ):
        super().__init__()
        self._first, self._given, self._last = tuple(before), tuple(given), tuple(after)
        self._all = (*before, *given, *after)
        self._progress, self._every = progress, every
        self._begun_at = progress.step  # the step before this `fit`

    def begin_stage(self, positions_per_step: int):
        """Begins a stage for the callbacks that have a method of this name."""
        self._progress.stage_is_over = False
        for callback in self._all:
            if hasattr(callback, "begin_stage"):
                callback.begin_stage(positions_per_step)

    def set_model(self, model):
        super().set_model(model)
        for callback in self._all:
            callback.set_model(model)

    def set_params(self, params):
        super().set_params(params)
        steps = self._progress.step + params["steps"]
        own = {"epochs": -(-steps // self._every), "steps": self._every}
        for callback in self._given:
            callback.set_params(params | own)

    def on_train_begin(self, logs=None):
        if self._progress.step == self._progress.first_step:
            for callback in self._all:
                callback.on_train_begin(logs)

    def on_epoch_begin(self, epoch, logs=None):
        self._begun_at = self._progress.step
        if self._begun_at == self._progress.first_step:
            for callback in self._given:
                callback.on_epoch_begin(self._begun_at // self._every)

    def on_train_batch_begin(self, batch, logs=None):
        for callback in self._all:
            callback.on_train_batch_begin(self._begun_at - self._progress.first_step + batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        progress = self._progress
        progress.reach(self._begun_at + batch + 1)
        number = progress.step - progress.first_step - 1
        for callback in (*self._first, *self._given):
            callback.on_train_batch_end(number, logs)
        epoch, last = progress.before // self._every, progress.step // self._every
        if last > epoch:
            # Means since the last report, as long as there is none: the columns of a CSVLogger are
            # those of the first epoch.
            means = {
                name: float(value)
                for name, value in logs.items()
                if name.endswith(("loss", "accuracy"))
            }
            for callback in self._given:
                callback.on_epoch_end(epoch, means | progress.logs())
                callback.on_epoch_begin(last)
        if self._given and self.model.stop_training:
            progress.stop_soon = True
        for callback in self._last:
            callback.on_train_batch_end(number, logs)
        if progress.is_stopping or progress.stage_is_over:
            self.model.stop_training = True

    def end(self):
        """Ends the training."""
        for callback in self._all:
            callback.on_train_end()


def check_callbacks(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """Raises InputError for a callback of Keras, or a subclass of it, that cannot work in a run."""
    for callback in callbacks:
        for kind in type(callback).__mro__:
            name, package = kind.__name__, kind.__module__.split(".")[0]
            if package == "keras" and name in _REFUSED:
                own = "" if kind is type(callback) else f"{type(callback).__name__}, a "
                raise InputError(f"`callbacks` must not contain {own}{name}: {_REFUSED[name]}.")
