"""Prints the log of a command: as lines, as a bar that moves on a terminal, or as JSON."""

import json
import logging
import shutil
import threading
import time
from datetime import datetime, timezone

from albert_keras.report import bytes_text, printable
from albert_keras.training.process_memory import peak_mb
from data_pipeline.errors import DOCUMENT
from data_pipeline.progress import UPDATE, done_now

#: Terminal code that erases the rest of the line.
_CLEAR_LINE = "\x1b[K"
#: Longest time without any output before the first line, in seconds.
FIRST_LINE = 1.5
#: Longest time without any output in a file, in seconds.
_LONGEST_SILENCE = 8
#: Longest time without any output on a terminal, in seconds.
_LONGEST_SILENCE_OF_A_TERMINAL = 2


class LogLines(logging.StreamHandler):
    """Prints log records as lines, and the elapsed time if there has been none for a while.

    The numbers of the mistakes of an error are the attribute `mistakes` of its record.

    Args:
        silence: float. Seconds without output after which the elapsed time is printed.
    """

    def __init__(self, stream, silence=_LONGEST_SILENCE):
        super().__init__(stream)
        self._silence = silence
        self._started = time.monotonic()
        self._last = self._started - max(silence - FIRST_LINE, 0)
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def emit(self, record):
        if record.levelno != UPDATE:
            self._note()
            super().emit(record)

    def format(self, record):
        text = super().format(record)
        numbers = ", ".join(getattr(record, "mistakes", ()))
        return printable(f"{text}\n{numbers}: see {DOCUMENT}" if numbers else text)

    def finish(self):
        """Stops the thread that prints the elapsed time."""
        self.quiet()
        self._thread.join()

    def quiet(self):
        """Stops what moves, which would disturb a question or a result."""
        self._finished.set()

    def _note(self):
        """Notes that there is output now."""
        self._started = self._last = time.monotonic()

    def _watch(self):
        while not self._finished.wait(min(self._silence, FIRST_LINE) / 8):
            now = time.monotonic()
            if now - self._last > self._silence:
                self._last = now
                with self.lock:
                    if not self._finished.is_set():
                        self._print_waiting(f"... {now - self._started:.0f} s{done_now()}")

    def _print_waiting(self, text):
        super().emit(logging.makeLogRecord({"msg": text, "levelname": "INFO"}))


class TerminalLines(LogLines):
    """Prints log records as lines, and below them the progress as a line that is overwritten."""

    def __init__(self, stream, silence=_LONGEST_SILENCE_OF_A_TERMINAL):
        self._is_open = False
        super().__init__(stream, silence)

    def emit(self, record):
        state = getattr(record, "progress", None)
        if state is None:
            self._close_line()
            super().emit(record)
        elif record.levelno == UPDATE and not self._finished.is_set():  # others are for log files
            self._note()
            self._print_waiting(f"{state.as_bar()}  memory {bytes_text(1e6 * peak_mb())}")

    def quiet(self):
        super().quiet()
        with self.lock:
            self._close_line()

    def _print_waiting(self, text):
        width = shutil.get_terminal_size().columns - 1
        self.stream.write(f"\r{printable(text[:width])}{_CLEAR_LINE}")
        self.flush()
        self._is_open = True

    def _close_line(self):
        if self._is_open:
            self._is_open = False
            self.stream.write(f"\r{_CLEAR_LINE}")
            self.flush()


class JsonLines(LogLines):
    """Prints log records as objects of JSON, one in each line.

    Each has `time` (ISO 8601, UTC), `level` and `message`. `progress` says how far work is, see
    `State.as_dict`; `report` has the values of a line in the log of a run; `mistakes` has the
    numbers of an error, which docs/errors.md explains.
    """

    def format(self, record):
        line = {
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": printable(record.getMessage()),
        }
        if hasattr(record, "progress"):
            line["progress"] = record.progress.as_dict()
        for name in ("report", "mistakes"):
            if hasattr(record, name):
                line[name] = getattr(record, name)
        return json.dumps(line, default=str)
