"""The callbacks of a run: several calls of `fit` as a single one, with an epoch per evaluation."""

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow import keras

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


class RunCallbacks(keras.callbacks.Callback):
    """Calls the callbacks of a run in all calls of `fit`, one per stage, as if they were one call.

    For all of them, training begins and ends only once, and batches are counted across all calls.
    The callbacks of a user see one epoch for each interval between two evaluations: at its end they
    receive the means of the last report, and the scores on held-out records as `val_loss` and so
    on. If one of them sets `model.stop_training`, the run is saved and ends.

    Args:
        before, after: Callbacks that receive `on_train_begin`, `on_epoch_begin` (once),
            `on_train_batch_end` and `on_train_end`; a method `begin_stage` is called before each
            stage.
        given: Callbacks of the user, called between these two.
        every: Steps between two evaluations.
        first_step: Steps done before this process.
        logs_of: Returns the logs of an epoch that ends now.
    """

    def __init__(
        self,
        before: Sequence[keras.callbacks.Callback],
        given: Sequence[keras.callbacks.Callback],
        after: Sequence[keras.callbacks.Callback],
        every: int,
        first_step: int,
        logs_of: Callable[[], dict[str, Any]],
    ):
        super().__init__()
        self._first, self._given, self._last = tuple(before), tuple(given), tuple(after)
        self._all = (*before, *given, *after)
        self._every, self._first_step, self._logs_of = every, first_step, logs_of
        self._before = self._batches = 0  # batches before this `fit`, and until now
        self.is_stopped = False  # whether a callback of the user has ended the run

    def begin_stage(self, positions_per_step: int, flops_per_step: int):
        """Begins a stage for the callbacks that have a method of this name."""
        for callback in self._all:
            if hasattr(callback, "begin_stage"):
                callback.begin_stage(positions_per_step, flops_per_step)

    def set_model(self, model):
        super().set_model(model)
        for callback in self._all:
            callback.set_model(model)

    def set_params(self, params):
        super().set_params(params)
        steps = self._first_step + self._batches + params["steps"]
        own = {"epochs": -(-steps // self._every), "steps": self._every}
        for callback in self._given:
            callback.set_params(params | own)

    def on_train_begin(self, logs=None):
        if self._batches == 0:
            for callback in self._all:
                callback.on_train_begin(logs)

    def on_epoch_begin(self, epoch, logs=None):
        self._before = self._batches
        if self._batches == 0:
            for callback in (*self._first, *self._last):
                callback.on_epoch_begin(epoch, logs)
            for callback in self._given:
                callback.on_epoch_begin(self._first_step // self._every)

    def on_train_batch_begin(self, batch, logs=None):
        for callback in self._given:
            callback.on_train_batch_begin(self._before + batch, logs)

    def on_train_batch_end(self, batch, logs=None):
        before, self._batches = self._batches, self._before + batch + 1
        for callback in (*self._first, *self._given):
            callback.on_train_batch_end(self._batches - 1, logs)
        epoch, last = (
            (self._first_step + steps) // self._every for steps in (before, self._batches)
        )
        if last > epoch:
            # Means since the last report, as long as there is none: the columns of a CSVLogger are
            # those of the first epoch.
            means = {
                name: float(value)
                for name, value in logs.items()
                if name.endswith(("loss", "accuracy"))
            }
            for callback in self._given:
                callback.on_epoch_end(epoch, means | self._logs_of())
                callback.on_epoch_begin(last)
        self.is_stopped = self.is_stopped or bool(self._given and self.model.stop_training)
        for callback in self._last:
            callback.on_train_batch_end(self._batches - 1, logs)

    def end(self):
        """Ends the training."""
        for callback in self._all:
            callback.on_train_end()


def check_callbacks(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """Raises InputError for a callback of Keras, or a subclass of it, that cannot work in a run."""
    for callback in callbacks:
        for kind in type(callback).__mro__:
            name, package = kind.__name__, kind.__module__.split(".")[0]
            if package in ("keras", "tf_keras") and name in _REFUSED:
                own = "" if kind is type(callback) else f"{type(callback).__name__}, a "
                raise InputError(f"`callbacks` must not contain {own}{name}: {_REFUSED[name]}.")
