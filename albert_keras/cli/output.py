"""Prints progress and errors of a command to stderr and its result to stdout."""

import json
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Iterator

import typer

from albert_keras.cli.interruption import command_line
from albert_keras.cli.log_lines import JsonLines, LogLines, TerminalLines
from albert_keras.report import printable
from albert_keras.training.errors import TrainingDiverged, TrainingStopped, WorkerLost
from data_pipeline.errors import InputError, mistakes_of
from data_pipeline.files import disk_full, failed_path, is_disk_full

_LOGGERS = ("albert_keras", "data_pipeline")

_progress = None


def start(verbose=False, debug=False, log_format="text"):
    """Sets up progress lines. Call it before TensorFlow is imported.

    Args:
        verbose: bool. Also print the messages of other libraries.
        debug: bool. Print all messages.
        log_format: str. "text" or "json".
    """
    global _progress
    finish()
    level = "0" if debug else "1" if verbose else "3"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = level
    is_terminal = log_format == "text" and sys.stderr.isatty()
    if not is_terminal:  # bars of downloads are no lines of a log
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    kinds = {"text": TerminalLines if is_terminal else LogLines, "json": JsonLines}
    _progress = kinds[log_format](sys.stderr)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [_progress]
        logger.propagate = False
        logger.setLevel(logging.DEBUG if verbose or debug else logging.INFO)
    if not (verbose or debug):
        logging.getLogger("tensorflow").setLevel(logging.ERROR)
        warnings.simplefilter("ignore")


def quiet():
    """Stops what moves on a terminal, before a question or a result."""
    if _progress is not None:
        _progress.quiet()


def finish():
    """Ends the progress lines of a command and restores the loggers."""
    global _progress
    if _progress is None:
        return
    _progress.quiet()
    _progress = None
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


def show(result, lines, as_json):
    """Prints the result of a command.

    Args:
        result: NamedTuple, dict or list; or an iterator of them. Printed if `as_json`, named tuples
            and settings in it as objects with the names of their fields.
        lines: iterable of str. Printed otherwise.
        as_json: bool.
    """
    if sys.stdout.isatty():
        quiet()
    if as_json:
        values = result if isinstance(result, Iterator) else [result]
        is_ascii = (sys.stdout.encoding or "").lower() not in ("utf-8", "utf8")
        lines = (json.dumps(_plain(one), default=str, ensure_ascii=is_ascii) for one in values)
    elif hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # of a terminal without UTF-8
    for line in lines:
        print(printable(line), flush=True)


def _plain(value):
    """Converts nested named tuples and settings to dicts."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def shell(*words):
    """Returns the words of a command as they can be pasted into a shell."""
    return shlex.join(map(str, words))


def report_error(error, debug):
    """Prints an error and returns its exit code.

    If another worker is lost, it restarts the program, which waits for that worker.

    Args:
        error: Exception.
        debug: bool. Raise the error again, with its traceback.

    Returns:
        int. Exit code.
    """
    if isinstance(error, WorkerLost):
        from albert_keras.training.cluster import restart

        typer.echo(f"{error}; restarting to resume training when it is back", err=True)
        finish()
        restart()
    code, mistakes = 2, mistakes_of(error)
    if isinstance(error, TrainingStopped):
        code, text = 128 + error.number, f"{error}:\n  {command_line()}"
    elif debug:
        raise error
    elif isinstance(error, TrainingDiverged | InputError):
        code = 2 if isinstance(error, InputError) else 3
        text = f"error: {error}"
    elif is_disk_full(error):
        error = disk_full(error)
        text, mistakes = f"error: {error}", error.mistakes
    elif isinstance(error, OSError):
        name = failed_path(error) or "input or output"
        text = f"error: {name}: {error.strerror or error}"
    else:
        code, text = 1, f"internal error: {type(error).__name__}: {error}"
        text += "\nRun the command again with --debug for details."
        if isinstance(error, ImportError):  # such as the backend that KERAS_BACKEND names
            text += " `albert-keras doctor` names faults of the installation."
    has_begun = _progress is not None
    if not has_begun:
        start()
    numbers = {"mistakes": [mistake.value for mistake in mistakes]}
    logging.getLogger("albert_keras").error("%s", text, extra=numbers)
    if not has_begun:
        finish()
    return code
