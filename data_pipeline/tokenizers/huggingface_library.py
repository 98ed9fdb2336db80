"""The library tokenizers of Hugging Face, which is optional, and how to interrupt its training."""

import threading
from collections.abc import Callable
from typing import Any

from data_pipeline.errors import InputError, Mistake

_SECONDS_TO_WAIT = 0.25


def load_tokenizers() -> Any:
    """Returns the library; raises InputError if it is not installed."""
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise InputError(
            "WordPiece vocabularies are trained, and byte-level BPE is read, with the library "
            "`tokenizers`, which is not installed. Install it with "
            "`pip install 'albert-keras[tokenizers]'`.",
            Mistake.EXTRA_MISSING,
        ) from error
    return tokenizers


def wait_for(train: Callable[[], object]) -> None:
    """Calls a function that blocks for long but releases the interpreter's lock.

    It runs in a thread of its own, so that Ctrl-C interrupts the wait; the thread then ends with
    the process.
    """
    errors: list[BaseException] = []

    def run():
        try:
            train()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_SECONDS_TO_WAIT)
    if errors:
        raise errors[0]
