"""Prints progress and errors of a command to stderr and its result to stdout."""

import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import typer

#: Terminal code that erases the rest of the line.
_CLEAR_LINE = "\x1b[K"

_ASCII = {"✔": "ok", "⚠": "!!", "✘": "xx", "→": "->", "…": "..."}

_LOGGERS = ("albert_keras", "data_pipeline")

#: Longest time without any output, in seconds.
_LONGEST_SILENCE = 8


class Progress(logging.StreamHandler):
    """Prints log lines, and the elapsed time if there has been none for a while.

    A record with the attribute `transient` is overwritten by the next line.

    Args:
        silence: float. Seconds without output after which the elapsed time is printed.
    """

    def __init__(self, stream, silence=_LONGEST_SILENCE):
        super().__init__(stream)
        self._silence = silence
        self._is_open = False
        self._started = self._last = time.monotonic()
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def emit(self, record):
        self._started = self._last = time.monotonic()
        if getattr(record, "transient", False):
            self.stream.write(f"\r{self.format(record)}{_CLEAR_LINE}")
            self._is_open = True
            self.flush()
            return
        self._close_line()
        super().emit(record)

    def _close_line(self):
        """Erases a transient line."""
        if self._is_open:
            self.stream.write(f"\r{_CLEAR_LINE}")
            self._is_open = False

    def finish(self):
        """Stops the thread that prints the elapsed time."""
        self._finished.set()
        self._thread.join()
        self._close_line()

    def _watch(self):
        while not self._finished.wait(self._silence / 8):
            now = time.monotonic()
            if now - self._last > self._silence:
                self._last = now
                self._close_line()
                self.stream.write(f"... {now - self._started:.0f} s\n")
                self.flush()


_progress = None


def start(verbose=False, debug=False):
    """Sets up progress lines. Call it before TensorFlow is imported.

    Args:
        verbose: bool. Also print the messages of other libraries.
        debug: bool. Print all messages.
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
    """Ends the progress lines of a command and restores the loggers."""
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
        result: NamedTuple, dict or list; or an iterator of dicts. Printed if `as_json`.
        lines: iterable of str. Printed otherwise.
        as_json: bool.
    """
    plain = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
    if as_json and isinstance(result, Iterator):
        for values in result:
            typer.echo(json.dumps(values, default=str, ensure_ascii=plain))
    elif as_json:
        values = result._asdict() if hasattr(result, "_asdict") else result
        typer.echo(json.dumps(values, default=str, ensure_ascii=plain))
    else:
        for line in lines:
            typer.echo(line)


def plain(value):
    """Converts nested named tuples to dicts, so that JSON has their field names."""
    if hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def count_of(number, noun):
    """Returns a number with its noun, such as "1 shard" or "2,000 shards"."""
    plural = noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def percent(fraction, digits=1):
    """Returns a fraction as a percentage, such as "3.7 %"."""
    return f"{100 * fraction:.{digits}f} %"


def printable(line):
    """Replaces characters that cannot be encoded if the output is not UTF-8."""
    if (sys.stdout.encoding or "ascii").lower().replace("-", "").startswith("utf"):
        return line
    for sign, replacement in _ASCII.items():
        line = line.replace(sign, replacement)
    return line.encode("ascii", "backslashreplace").decode()


def restart_if_worker_lost(error):
    """Restarts the program if another worker is lost; the new process waits for that worker.

    Does not return in this case.
    """
    if type(error).__name__ != "WorkerLost":
        return
    from albert_keras.training.distributed import cluster

    if isinstance(error, cluster.WorkerLost):
        typer.echo(f"{error}; restarting to resume training when it is back", err=True)
        finish()
        cluster.restart()


def report_error(error, debug):
    """Prints an error and returns its exit code.

    Args:
        error: Exception.
        debug: bool. Raise the error again, with its traceback.

    Returns:
        int. Exit code.
    """
    from albert_keras.cli.interruption import EXIT_CODE, Interrupted, command_line
    from albert_keras.training.errors import TrainingDiverged, TrainingStopped
    from data_pipeline.errors import InputError
    from data_pipeline.files import failed_path, failure_reason, is_disk_full

    if isinstance(error, TrainingStopped):
        typer.echo(f"{error}:\n  {command_line()}", err=True)
        return 143
    if isinstance(error, Interrupted):
        typer.echo(str(error), err=True)
        return EXIT_CODE
    if debug:
        raise error
    if isinstance(error, TrainingDiverged):
        typer.echo(f"error: {error}", err=True)
        return 3
    if isinstance(error, InputError):
        typer.echo(f"error: {error}", err=True)
        return 2
    if is_disk_full(error):
        name = failed_path(error) if isinstance(error, OSError) else None
        detail = f"`{name}` could not be written." if name else f"{error}."
        message = f"The disk is full: {detail} Free some space or choose a folder on another disk."
        typer.echo(f"error: {message}", err=True)
        return 2
    if isinstance(error, OSError):
        name = failed_path(error) or "input or output"
        typer.echo(f"error: {name}: {failure_reason(error)}", err=True)
        return 2
    typer.echo(f"internal error: {type(error).__name__}: {error}", err=True)
    typer.echo("Run the command again with --debug for details.", err=True)
    return 1
