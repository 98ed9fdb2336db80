"""Ctrl-C: one line on how to go on."""

import contextlib
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

#: Exit code of a command that Ctrl-C ended, as of shells.
EXIT_CODE = 128 + signal.SIGINT


def command_line() -> str:
    """Returns the command that runs, as a user can give it again."""
    program = Path(sys.argv[0]).name
    words = ["python", "-m", "albert_keras"] if program == "__main__.py" else [program]
    return shlex.join([*words, *sys.argv[1:]])


def interrupted() -> str:
    """Returns the message of a command that Ctrl-C ended."""
    again = "Repeat the command to resume the work that it saved, or to start again"
    return f"Interrupted. {again}:\n  {command_line()}"


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Lets Ctrl-C end the process in the block, which runs long outside of Python.

    Python itself notices Ctrl-C only when such an operation returns.
    """
    previous = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
