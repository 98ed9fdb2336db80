"""Prints the log of a command: as lines, of which a terminal overwrites some, or as JSON."""

import json
import logging
import shutil
from datetime import datetime, timezone

from albert_keras.report import printable
from data_pipeline.errors import DOCUMENT

#: Terminal code that erases the rest of the line.
_CLEAR_LINE = "\x1b[K"


class LogLines(logging.StreamHandler):
    """Prints log records as lines.

    The numbers of the mistakes of an error are the attribute `mistakes` of its record.
    """

    def format(self, record):
        text = super().format(record)
        numbers = ", ".join(getattr(record, "mistakes", ()))
        return printable(f"{text}\n{numbers}: see {DOCUMENT}" if numbers else text)

    def quiet(self):
        """Stops what moves, which would disturb a question or a result."""


class TerminalLines(LogLines):
    """Prints log records as lines, and below them the progress as a line that is overwritten."""

    def __init__(self, stream):
        super().__init__(stream)
        self._is_open = self._is_quiet = False

    def emit(self, record):
        if not hasattr(record, "progress"):
            self._close_line()
            super().emit(record)
        elif not self._is_quiet:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r{printable(record.getMessage()[:width])}{_CLEAR_LINE}")
            self.flush()
            self._is_open = True

    def quiet(self):
        self._is_quiet = True
        self._close_line()

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
