"""Presents several calls of `fit` to the callbacks as a single one."""

from collections.abc import Sequence

from tensorflow import keras


class AcrossStages(keras.callbacks.Callback):
    """Tells callbacks of several calls of `fit`, one per stage, as if they were one call.

    Callbacks receive `on_train_begin`, `on_epoch_begin`, `on_train_batch_end` and `on_train_end`.
    For them, training and an epoch begin only once, and batches are counted across all
    calls. Call `begin_stage` before each `fit`, and `end` after the last one.
    """

    def __init__(self, callbacks: Sequence[keras.callbacks.Callback]):
        super().__init__()
        self._callbacks = tuple(callbacks)
        self._before = self._batches = 0  # batches before this `fit`, and until now

    def begin_stage(self, positions_per_step: int, flops_per_step: int):
        """Begins a stage for the callbacks that have a method of this name."""
        for callback in self._callbacks:
            if hasattr(callback, "begin_stage"):
                callback.begin_stage(positions_per_step, flops_per_step)

    def set_model(self, model):
        super().set_model(model)
        for callback in self._callbacks:
            callback.set_model(model)

    def on_train_begin(self, logs=None):
        if self._batches == 0:
            for callback in self._callbacks:
                callback.on_train_begin(logs)

    def on_epoch_begin(self, epoch, logs=None):
        self._before = self._batches
        if self._batches == 0:
            for callback in self._callbacks:
                callback.on_epoch_begin(epoch, logs)

    def on_train_batch_end(self, batch, logs=None):
        self._batches = self._before + batch + 1
        for callback in self._callbacks:
            callback.on_train_batch_end(self._before + batch, logs)

    def end(self):
        """Ends the training."""
        for callback in self._callbacks:
            callback.on_train_end()
