"""Ctrl-C: one line on what was saved and how to resume, within two seconds."""

import contextlib
import os
import shlex
import signal
import sys
import threading
from pathlib import Path

from albert_keras.report import printable
from data_pipeline.files import remove_temporaries

#: Exit code of a command that Ctrl-C ended, as of shells.
EXIT_CODE = 128 + signal.SIGINT
#: Seconds after Ctrl-C in which a command can clean up. Python raises KeyboardInterrupt only when a
#: running operation of TensorFlow or SentencePiece returns, which may take minutes.
_PATIENCE = 1.2

#: Whether the running command resumes its work if it is repeated.
_resumes = False


def command_line() -> str:
    """Returns the command that runs, as a user can give it again."""
    program = Path(sys.argv[0]).name
    words = ["python", "-m", "albert_keras"] if program == "__main__.py" else [program]
    return shlex.join([*words, *sys.argv[1:]])


class Interrupted(Exception):
    """Ctrl-C ended a command; the message says what was saved."""

    def __init__(self, saved=""):
        command = command_line()
        if _resumes:
            saved = saved or "Finished work is saved; repeat the command to resume it"
        else:
            saved = saved or "Nothing was saved; repeat the command to start again"
        super().__init__(f"Interrupted. {saved}:\n  {command}")


@contextlib.contextmanager
def interruptible(resumes: bool):
    """Converts Ctrl-C in the block, which runs a command, to Interrupted.

    Args:
        resumes: Whether the command resumes its work if it is repeated.
    """
    global _resumes
    _resumes = resumes
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Interrupted(str(interrupt)) from None
    finally:
        _resumes = False


@contextlib.contextmanager
def cleaning_up():
    """Lets SIGTERM end the block as an exception does, so that no temporary file is left."""

    def end(number, _):
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def ending_in_time():
    """Ends the process with the message of Interrupted if Ctrl-C does not end the block in time.

    It has no effect while Ctrl-C has another handler, as during training, which finishes its step.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    received, sent = os.pipe()
    os.set_blocking(sent, False)
    previous = signal.set_wakeup_fd(sent, warn_on_full_buffer=False)
    over = threading.Event()
    threading.Thread(target=_watch, args=(received, over), daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(previous)
        os.close(sent)


def _watch(received, over):
    """Waits for Ctrl-C, which Python announces by a byte, or the end of the block."""
    with open(received, "rb", buffering=0) as bytes_of_signals:
        while number := bytes_of_signals.read(1):
            is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            if number[0] != signal.SIGINT or not is_ours:
                continue
            message = str(Interrupted())
            if not over.wait(_PATIENCE):
                remove_temporaries()
                sys.stderr.write(f"{printable(message)}\n")
                sys.stderr.flush()
                os._exit(EXIT_CODE)
