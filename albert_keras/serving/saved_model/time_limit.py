"""A limit on the time that a SavedModel takes: it is a program, and may contain an endless loop."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from tensorflow.python.eager.cancellation import CancellationManager, CancellationManagerContext

from data_pipeline.errors import InputError


@contextlib.contextmanager
def time_limit(seconds: float, path: Path) -> Iterator[None]:
    """Cancels what TensorFlow runs in the block, in this thread, after some seconds.

    InputError, which names the `path` of the SavedModel, if that happens.
    """
    manager = CancellationManager()
    timer = threading.Timer(seconds, manager.start_cancel)
    timer.daemon = True
    timer.start()
    try:
        with CancellationManagerContext(manager):
            yield
    except tf.errors.CancelledError as error:
        if not manager.is_cancelled:
            raise
        raise InputError(
            f"`{path}` must load and answer within {seconds:,g} s. It did not, and was stopped. "
            "It may contain an endless loop. If it is only slow, give shorter texts."
        ) from error
    finally:
        timer.cancel()
        timer.join()
