"""When a run saves, and how it ends early without losing a step."""

import logging
import signal
import threading
from collections.abc import Callable

import keras

from albert_keras.training.run_callbacks import Progress

logger = logging.getLogger(__name__)

#: Consecutive skipped updates that end a run.
MAX_CONSECUTIVE_SKIPS = 10

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves regularly and at the end; after SIGTERM or Ctrl-C it saves once the step is finished.

    A second signal ends the process at once, with exit status 143 for SIGTERM or 130 for SIGINT.
    Signals are handled within the context: enter it around `fit`.

    With several workers each has its own; all of them save and stop at the same steps.
    """

    def __init__(
        self,
        save: Callable[[int], None],  # writes the checkpoint of a step
        every: int,  # steps between checkpoints
        progress: Progress,
        # Combines the stop requests of all workers; each calls it exactly once per execution.
        agree: Callable[[bool], bool] = bool,
    ):
        super().__init__()
        self.every, self.progress = every, progress
        self.saved = progress.step  # the newest step that is saved
        self.stopped_by = None  # the signal that this worker received
        self._save, self._agree = save, agree
        self._previous_handlers = {}

    def __enter__(self):
        # Python allows only the main thread to set handlers.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._previous_handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *error):
        for number, handler in self._previous_handlers.items():
            # None stands for a handler that was not set by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def save_now(self):
        """Saves the current step, unless it is saved already."""
        step = self.progress.step
        if self.saved != step:
            self._save(step)
            self.saved = step
            logger.info("checkpoint of step %d saved", step)

    def on_train_batch_end(self, batch, logs=None):
        progress = self.progress
        request = progress.stop_soon or self.stopped_by is not None
        progress.is_stopping = self._agree(request)
        if progress.is_stopping or progress.save_soon or progress.is_at(self.every):
            self.save_now()
            progress.save_soon = False
        if progress.is_stopping and not request:
            logger.warning("another worker requested to stop at step %d", progress.step)

    def _on_signal(self, number, frame):
        self.stopped_by = number
        # Not the previous handlers: Python's own would wait for the end of a running operation.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        logger.warning("Stopping after this step and saving. Press Ctrl-C again to stop at once.")


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends `fit` after ten consecutive updates that were not finite, or spikes.

    Put it before `SaveCheckpoints`: what is saved are the weights before the first of them.

    Args:
        progress: Progress.
        skipped_before: Consecutive skips before this `fit`; they do not end it.
    """

    def __init__(self, progress: Progress, skipped_before: int):
        super().__init__()
        self.progress, self.skipped_before = progress, skipped_before
        self.has_diverged = False

    def on_train_batch_end(self, batch, logs=None):
        skipped = int(logs["skipped_in_row"])
        if skipped == 0:
            self.skipped_before = 0
        if skipped - self.skipped_before >= MAX_CONSECUTIVE_SKIPS:
            self.has_diverged = self.progress.stop_soon = True
