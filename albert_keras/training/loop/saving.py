"""When a run saves, and how it ends early without losing a step."""

import json
import logging
import math
import signal
import threading
import time

from tensorflow import keras

from data_pipeline.files import whole_file

logger = logging.getLogger(__name__)

#: Consecutive skipped updates that end a run.
MAX_CONSECUTIVE_SKIPS = 10

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves regularly and at the end; after SIGTERM or Ctrl-C it saves once the step is finished.

    A second signal ends the process at once, with exit status 143 for SIGTERM or 130 for SIGINT.
    Signals are handled from the start of `fit`, or from `install()` or entering the context on.
    Leave the context or call `restore_signals()` afterwards, also if `fit` fails.

    With several workers each has its own; all of them save and stop at the same steps.

    Args:
        save: callable. Writes the checkpoint of a step, `save(step)`.
        every: int. Steps between checkpoints. If one execution makes several steps, the checkpoint
            is that of the first execution that reaches or passes a multiple.
        first_step: int. Steps done before this `fit`.
        last_step: int. The step that ends the run, which is always saved; may be changed meanwhile.
        time_limit: float or None. Seconds from now on after which `fit` ends early.
        agree: callable of bool -> bool. Combines the stop requests of all workers; each worker
            calls it exactly once per execution.

    Attributes:
        step, saved: int. Steps done, and the newest one saved.
        stopped_by: int or None. The signal that this worker received.
        time_is_up: bool. Whether the time limit has passed.
        stopping: bool. Whether `fit` ends early, for whatever worker.
    """

    def __init__(self, save, every, first_step, last_step, time_limit=None, agree=bool):
        super().__init__()
        self.every, self.last_step = every, last_step
        self.step = self.saved = first_step
        self.stopped_by = None
        self.time_is_up = self.stopping = self._stop_requested = self._save_requested = False
        self._save, self._agree = save, agree
        self._epoch_started_at = first_step
        self._end = time.monotonic() + (math.inf if time_limit is None else time_limit)
        self._previous_handlers = {}

    def __enter__(self):
        self.install()
        return self

    def __exit__(self, *error):
        self.restore_signals()

    def install(self):
        """Handles SIGTERM and SIGINT from now on; `fit` stops after the current step."""
        # Python allows only the main thread to set handlers.
        if self._previous_handlers or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            self._previous_handlers[number] = signal.signal(number, self._on_signal)

    def restore_signals(self):
        """Restores the previous signal handlers."""
        for number, handler in self._previous_handlers.items():
            # None stands for a handler that was not set by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous_handlers = {}

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

    def on_train_begin(self, logs=None):
        self.install()

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_started_at = self.step

    def on_train_batch_end(self, batch, logs=None):
        before = self.step
        # Keras passes the index, within the epoch, of the last step of the execution.
        self.step = self._epoch_started_at + batch + 1
        self.time_is_up = time.monotonic() > self._end
        request = self._stop_requested or self.time_is_up or self.stopped_by is not None
        self.stopping = self._agree(request)
        is_due = self.step // self.every > before // self.every
        if self.stopping or is_due or self._save_requested or self.step >= self.last_step:
            self.save_now()
            self._save_requested = False
        if self.stopping:
            if not request:
                logger.warning("another worker requested to stop at step %d", self.step)
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self.restore_signals()

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
        folder: Path. Folder of the run; `diverged.json` in it lists the steps and their records.
        saving: SaveCheckpoints. Saves when this ends the run.
        first_step: int. Steps done before this `fit`.
        numbers_of: callable. Returns the numbers of the records of a step (int array), given the
            number of steps before it.
        skipped_before: int. Consecutive skips before this `fit`; they do not end it.
        writes: bool. Whether this worker writes files.

    Attributes:
        numbers: list of int or None. Records of the last batch, once the run has diverged.
    """

    def __init__(self, folder, saving, first_step, numbers_of, skipped_before=0, writes=True):
        super().__init__()
        self.folder, self.saving, self.writes = folder, saving, writes
        self.first_step, self.numbers_of = first_step, numbers_of
        self.skipped_before = skipped_before
        self.numbers = None

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
            with whole_file(self.folder / "diverged.json") as temporary:
                temporary.write_text(json.dumps(batches) + "\n", encoding="utf-8")
        self.saving.ask_to_stop()
