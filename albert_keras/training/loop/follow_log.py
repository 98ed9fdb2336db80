"""Sends the log of a run to a tracker while it grows."""

import logging
import math
import re
from collections.abc import Callable
from pathlib import Path

from tensorflow import keras

from albert_keras.runs.run_record import flat_values
from albert_keras.training.loop.log_file import LogTail
from albert_keras.training.tracking import (
    TRACKERS,
    Tracker,
    open_tracker,
    read_tracking,
    save_tracking,
)

logger = logging.getLogger(__name__)

#: What names of metrics may contain in every tracker.
_OTHER_CHARACTERS = re.compile(r"[^\w\-./ ]")


class FollowLog(keras.callbacks.Callback):
    """Sends the lines of a run's log to its tracker, beginning with the lines of earlier calls.

    Put it after all callbacks that write to the log, and enter it as a context around `fit`. Steps
    that the tracker already has are not sent again, although an interrupted run repeats some of
    them. If the tracker fails, the run continues without it.

    Args:
        name: The tracker, one of `TRACKERS`.
        folder: Folder of the run.
        is_complete: Returns whether the run has reached its end.
    """

    def __init__(self, name: str, folder: Path, tracker: Tracker, is_complete: Callable[[], bool]):
        super().__init__()
        self._name, self._folder, self._is_complete = name, folder, is_complete
        self._tracker: Tracker | None = tracker
        self._sent = read_tracking(folder).get(name, {}).get("step", -1)
        self._tail: LogTail | None = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self._try(lambda tracker: tracker.close(kind is None and self._is_complete()))

    def on_train_begin(self, logs=None):
        self._tail = LogTail(self._folder)
        self._send()

    def on_train_batch_end(self, batch, logs=None):
        self._send()

    def _send(self):
        lines = self._tail.new_lines() if self._tracker is not None else []
        lines = [line for line in lines if line["step"] > self._sent]
        if lines:
            self._try(lambda tracker: self._log(tracker, lines))

    def _log(self, tracker, lines):
        for line in lines:
            if values := metrics_of(line):
                tracker.log(line["step"], values)
        save_tracking(self._folder, self._name, tracker.id, lines[-1]["step"])

    def _try(self, use):
        """Uses the tracker, unless it failed before."""
        if self._tracker is None:
            return
        try:
            use(self._tracker)
        except Exception as error:  # each tracker has errors of its own
            self._tracker = None
            logger.warning(
                "`--track %s` failed (%s: %s). Training continues without it; the lines that were "
                "not sent are in `%s` and are sent when the run is resumed.",
                self._name,
                type(error).__name__,
                error,
                self._folder / "log.jsonl",
            )


def follow_log(run, name: str, is_complete: Callable[[], bool]) -> FollowLog | None:
    """Returns the callback that sends the log of a Run to a tracker; None for TensorBoard alone.

    Raises:
        InputError: As `open_tracker`.
    """
    if name == TRACKERS[0]:
        return None
    is_task = run.record.get("kind") == "finetuning"
    store = run.path.parent if is_task else run.path  # one for all seeds
    title = f"{store.name}/{run.path.name}" if is_task else run.path.name
    parts = {part: run.record[part] for part in ("config", "albert_config")}
    tracker = open_tracker(name, run.path, store, title, flat_values(parts))
    if name not in read_tracking(run.path):
        save_tracking(run.path, name, tracker.id, -1)
    logger.info("tracked by %s: %s", name, tracker.where)
    return FollowLog(name, run.path, tracker, is_complete)


def metrics_of(line: dict) -> dict[str, float]:
    """Returns the numbers in a line of the log by name; names of an evaluation get a prefix."""
    named = {}
    for name, value in line.items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        named |= {f"{name}/{part}" if part else name: number for part, number in parts}
    return {
        _OTHER_CHARACTERS.sub("_", name): float(value)
        for name, value in named.items()
        if name != "step" and isinstance(value, int | float) and math.isfinite(value)
    }
