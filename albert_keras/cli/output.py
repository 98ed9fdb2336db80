"""What commands print: progress and errors on stderr, results on stdout."""

import json
import logging
import os
import shlex
import sys
import threading
import time
import warnings
from pathlib import Path

import typer

#: Tells a terminal to forget the rest of the line.
_CLEAR_LINE = "\x1b[K"

_LOGGERS = ("albert_keras", "data_pipeline")

#: No command is silent for longer, in seconds.
_LONGEST_SILENCE = 8


class Progress(logging.StreamHandler):
    """Shows log lines, and after a while without any that the work goes on.

    Lines with the attribute `transient` are written over by the next one.

    Args:
        silence: float. Seconds without a line after which one is shown.
    """

    def __init__(self, stream, silence=_LONGEST_SILENCE):
        super().__init__(stream)
        self._silence = silence
        self._is_open = False
        self._begun = self._last = time.monotonic()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def emit(self, record):
        self._begun = self._last = time.monotonic()
        if getattr(record, "transient", False):
            self.stream.write(f"\r{self.format(record)}{_CLEAR_LINE}")
            self._is_open = True
            self.flush()
            return
        self._close_line()
        super().emit(record)

    def _close_line(self):
        """Takes a transient line off the screen."""
        if self._is_open:
            self.stream.write(f"\r{_CLEAR_LINE}")
            self._is_open = False

    def finish(self):
        """Stops watching."""
        self._finished.set()
        self._thread.join()
        self._close_line()

    def _watch(self):
        while not self._finished.wait(self._silence / 8):
            now = time.monotonic()
            if now - self._last > self._silence:
                self._last = now
                self._close_line()
                self.stream.write(f"... {now - self._begun:.0f} s\n")
                self.flush()


_progress = None


def start(verbose=False, debug=False):
    """Sets up progress lines; call it before anything that loads TensorFlow.

    Args:
        verbose: bool. Show what the libraries below say as well.
        debug: bool. Show everything.
    """
    global _progress
    finish()
    level = "0" if debug else "1" if verbose else "3"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = level
    _progress = Progress(sys.stderr)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [_progress]
        logger.propagate = False
        logger.setLevel(logging.DEBUG if verbose or debug else logging.INFO)
    if not (verbose or debug):
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        warnings.simplefilter("ignore")


def finish():
    """Ends the progress lines of a command and leaves the loggers as they were."""
    global _progress
    if _progress is None:
        return
    _progress.finish()
    _progress = None
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def show(result, lines, as_json):
    """Prints the result of a command.

    Args:
        result: NamedTuple, dataclass-like with `_asdict`, or dict or list. What `--json` prints.
        lines: iterable of str. What people read instead.
        as_json: bool.
    """
    if as_json:
        values = result._asdict() if hasattr(result, "_asdict") else result
        plain = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
        typer.echo(json.dumps(values, default=str, ensure_ascii=plain))
    else:
        for line in lines:
            typer.echo(line)


def restart_if_worker_lost(error):
    """Starts the program anew when another worker is gone; then it waits for that one.

    Does not return in that case.
    """
    if type(error).__name__ != "WorkerLost":
        return
    from albert_keras.training.distributed import cluster

    if isinstance(error, cluster.WorkerLost):
        typer.echo(f"{error}; starting anew to go on with it once it is back", err=True)
        finish()
        cluster.restart()


def report_error(error, debug):
    """Prints an error in one go and tells the exit code that belongs to it.

    Args:
        error: Exception.
        debug: bool. Raise it again, with its traceback.

    Returns:
        int.
    """
    from albert_keras.training.errors import TrainingDiverged, TrainingStopped
    from data_pipeline.errors import InputError

    if isinstance(error, TrainingStopped):
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        typer.echo(f"{error}:\n  {command}", err=True)
        return 143
    if debug:
        raise error
    if isinstance(error, TrainingDiverged):
        typer.echo(f"error: {error}", err=True)
        return 3
    if isinstance(error, InputError):
        typer.echo(f"error: {error}", err=True)
        return 2
    if isinstance(error, OSError):
        typer.echo(f"error: {error.filename or 'input or output'}: {error.strerror}", err=True)
        return 2
    typer.echo(
        f"internal error: {type(error).__name__}: {error}\nRun it again with --debug for details.",
        err=True,
    )
    return 1
