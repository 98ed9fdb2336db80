"""When a run saves, and how it ends early without losing a step."""

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from tensorflow import keras

from data_pipeline.files import write_json

logger = logging.getLogger(__name__)

#: Consecutive skipped updates that end a run.
MAX_CONSECUTIVE_SKIPS = 10

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves regularly and at the end; after SIGTERM or Ctrl-C it saves once the step is finished.

    A second signal ends the process at once, with exit status 143 for SIGTERM or 130 for SIGINT.
    Signals are handled within the context: enter it around `fit`.

    With several workers each has its own; all of them save and stop at the same steps. If one
    execution makes several steps, the first that reaches or passes a multiple of `every` saves.
    """

    def __init__(
        self,
        save: Callable[[int], None],  # writes the checkpoint of a step
        every: int,  # steps between checkpoints
        first_step: int,  # steps done before this `fit`
        last_step: int,
        # Combines the stop requests of all workers; each calls it exactly once per execution.
        agree: Callable[[bool], bool] = bool,
    ):
        super().__init__()
        self.every = every
        #: The step that ends the run, which is always saved; may be changed during training.
        self.last_step = last_step
        self.step = self.saved = first_step  # steps done, and the newest one saved
        self.stopped_by = None  # the signal that this worker received
        self.stopping = False  # whether `fit` ends early, for whatever worker
        self._stop_requested = self._save_requested = False
        #: Returns whether another callback wants to end the run; may be set before training.
        self.stop_if: Callable[[], bool] = lambda: False
        self._save, self._agree = save, agree
        self._epoch_started_at = first_step
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
        if self.saved != self.step:
            self._save(self.step)
            self.saved = self.step
            logger.info("checkpoint of step %d saved", self.step)

    def save_soon(self):
        """Requests a checkpoint at the end of this step."""
        self._save_requested = True

    def ask_to_stop(self):
        """Requests to save and stop at the end of this step or the next one, as a signal does."""
        self._stop_requested = True

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_started_at = self.step

    def on_train_batch_end(self, batch, logs=None):
        before = self.step
        # Keras passes the index, within the epoch, of the last step of the execution.
        self.step = self._epoch_started_at + batch + 1
        request = self._stop_requested or self.stopped_by is not None or self.stop_if()
        self.stopping = self._agree(request)
        is_due = self.step // self.every > before // self.every
        if self.stopping or is_due or self._save_requested or self.step >= self.last_step:
            self.save_now()
            self._save_requested = False
        if self.stopping:
            if not request:
                logger.warning("another worker requested to stop at step %d", self.step)
            self.model.stop_training = True

    def _on_signal(self, number, frame):
        self.stopped_by = number
        # Not the previous handlers: Python's own would wait for the end of a running operation.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        logger.warning("Stopping after this step and saving. Press Ctrl-C again to stop at once.")


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends `fit` after ten consecutive updates that were not finite, or spikes.

    Put it before `SaveCheckpoints`: what is saved are the weights before the first of them.
    `diverged.json` in the folder of the run lists the steps and their records.
    """

    def __init__(
        self,
        folder: Path,  # of the run
        saving: SaveCheckpoints,  # saves when this ends the run
        first_step: int,  # steps done before this `fit`
        numbers_of: Callable,  # the numbers of the records that a step sees, int array
        skipped_before: int,  # consecutive skips before this `fit`; they do not end it
        writes: bool,  # whether this worker writes files
    ):
        super().__init__()
        self.folder, self.saving, self.writes = folder, saving, writes
        self.first_step, self.numbers_of = first_step, numbers_of
        self.skipped_before = skipped_before
        self.numbers = None  # records of the last batch, once the run has diverged

    def on_train_batch_end(self, batch, logs=None):
        skipped = int(logs["skipped_in_row"])
        if skipped == 0:
            self.skipped_before = 0
        if skipped - self.skipped_before < MAX_CONSECUTIVE_SKIPS:
            return
        step = self.first_step + batch + 1
        batches = [
            {"step": before + 1, "records": [int(record) for record in self.numbers_of(before)]}
            for before in range(step - MAX_CONSECUTIVE_SKIPS, step)
        ]
        self.numbers = batches[-1]["records"]
        if self.writes:
            write_json(self.folder / "diverged.json", batches, indent=None)
        self.saving.ask_to_stop()
