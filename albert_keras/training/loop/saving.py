"""When a checkpoint is saved during `fit`, and how a run ends early without losing a step."""

import logging
import math
import signal
import threading
import time

from tensorflow import keras

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves each so many steps and at the end; SIGTERM and Ctrl-C finish the step and save first.

    A second signal ends the process at once, as if nobody had listened (a shell then reports exit
    status 143 for SIGTERM, 130 for SIGINT). `fit` listens from its beginning; used as a context
    manager, or after `install()`, it does so earlier. Leave the context, or call
    `restore_signals()`, also when `fit` fails.

    With several workers each makes one of these; all of them save and stop at the same steps.

    Args:
        save: callable that writes the checkpoint of a step, `save(step)`.
        every: int. Steps between checkpoints. If one execution makes several steps, the checkpoint
            is that of the first execution that reaches or passes a multiple.
        first_step: int. Steps done before this `fit`.
        last_step: int. The step that ends the run; it is always saved. The attribute may be changed
            while `fit` goes on.
        time_limit: float or None. Seconds from now on after which `fit` ends early.
        agree: callable of bool -> bool. Makes the wishes of all workers to stop one decision; each
            worker calls it exactly once per execution.

    Attributes:
        step, saved: int. Steps done, and the newest one saved.
        stopped_by: int or None. The signal that asked this worker to stop.
        time_is_up: bool. Whether the time limit has passed.
        stopping: bool. Whether `fit` ends early, be it for another worker.
    """

    def __init__(self, save, every, first_step, last_step, time_limit=None, agree=bool):
        super().__init__()
        self.every, self.last_step = every, last_step
        self.step = self.saved = first_step
        self.stopped_by = None
        self.time_is_up = self.stopping = self._is_asked = self._is_wanted = False
        self._save, self._agree = save, agree
        self._epoch_began_at = first_step
        self._end = time.monotonic() + (math.inf if time_limit is None else time_limit)
        self._previous_handlers = {}

    def __enter__(self):
        self.install()
        return self

    def __exit__(self, *error):
        self.restore_signals()

    def install(self):
        """Listens to SIGTERM and SIGINT; a signal is honoured after the step that follows it."""
        # Python lets no other thread set handlers.
        if self._previous_handlers or threading.current_thread() is not threading.main_thread():
            return
        for number in _SIGNALS:
            self._previous_handlers[number] = signal.signal(number, self._on_signal)

    def restore_signals(self):
        """Hands the signals back to whom they belonged to."""
        for number, handler in self._previous_handlers.items():
            # None stands for a handler that was not set by Python.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._previous_handlers = {}

    def save_now(self):
        """Saves the present step, unless that was done."""
        if self.saved != self.step:
            self._save(self.step)
            self.saved = self.step
            logger.info("checkpoint of step %d saved", self.step)

    def save_soon(self):
        """Makes the end of this step save."""
        self._is_wanted = True

    def ask_to_stop(self):
        """Makes the end of this step, or of the next one, save and stop, as a signal does."""
        self._is_asked = True

    def on_train_begin(self, logs=None):
        self.install()

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_began_at = self.step

    def on_train_batch_end(self, batch, logs=None):
        before = self.step
        # Keras gives the index, within the epoch, of the last step of the execution.
        self.step = self._epoch_began_at + batch + 1
        self.time_is_up = time.monotonic() > self._end
        wish = self._is_asked or self.time_is_up or self.stopped_by is not None
        self.stopping = self._agree(wish)
        is_due = self.step // self.every > before // self.every
        if self.stopping or is_due or self._is_wanted or self.step >= self.last_step:
            self.save_now()
            self._is_wanted = False
        if self.stopping:
            if not wish:
                logger.warning("another worker asked to stop at step %d", self.step)
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self.restore_signals()

    def _on_signal(self, number, frame):
        self.stopped_by = number
        # Not the previous handlers: Python's own would wait for the end of a running operation.
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        logger.warning("stop asked: finishing the step and saving (again: stop at once)")
