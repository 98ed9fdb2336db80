"""The file `log.jsonl` of a run: how its lines are read and written. No TensorFlow here."""

import json
import logging
import math
import os
from pathlib import Path

from data_pipeline.files import naming, whole_file
from data_pipeline.limits import parse_json

logger = logging.getLogger(__name__)

#: Keys of a line that depend on the clock; all others are the same if a run is repeated.
TIMING = ("tokens_per_second", "positions_per_second", "input_wait", "seconds")

_LOG = "log.jsonl"
#: Key of the lines that are no reports of the training.
_EVALUATION = "evaluation"


def read_log(folder):
    """Reads the training reports in a run's `log.jsonl`: list of dicts, NaN in place of null."""
    return [
        {name: math.nan if value is None else value for name, value in line.items()}
        for line in _lines(folder)
        if _EVALUATION not in line
    ]


def read_evaluations(folder):
    """Reads the evaluations in a run's `log.jsonl`: list of (step, scores), as logged."""
    return [(line["step"], line[_EVALUATION]) for line in _lines(folder) if _EVALUATION in line]


def log_evaluation(folder, step, scores):
    """Appends the scores of an evaluation (dict) to a run's `log.jsonl`."""
    append_to_log(folder, json.dumps({"step": step, _EVALUATION: scores}) + "\n")


def keep_log_until(folder, step):
    """Removes lines of later steps, which are repeated because no checkpoint contains them."""
    path = Path(folder) / _LOG
    if not path.is_file():
        return
    kept = [raw + b"\n" for raw, line in _read_lines(folder) if line["step"] <= step]
    with whole_file(path) as temporary:
        temporary.write_bytes(b"".join(kept))


def _lines(folder):
    return [line for _, line in _read_lines(folder)]


def _read_lines(folder):
    """Returns the lines of a log: list of (bytes, dict).

    Damaged ones are left out with a warning: checkpoints do not depend on the log. So is, without
    one, the incomplete last line of a process that was killed.
    """
    path = Path(folder) / _LOG
    if not path.is_file():
        return []
    lines, damaged = [], []
    *complete, last = path.read_bytes().split(b"\n")
    for number, raw in enumerate([*complete, last] if last else complete, start=1):
        try:
            line = parse_json(raw)
            if type(line["step"]) is not int:
                raise TypeError("a step is a number")
            lines.append((raw, line))
        except (ValueError, TypeError, KeyError):
            if raw is not last:
                damaged.append(str(number))
    if damaged:
        logger.warning("`%s` is damaged in line %s, which is ignored.", path, ", ".join(damaged))
    return lines


def append_to_log(folder, text):
    """Appends complete lines (str) to a run's `log.jsonl`, after ending a truncated last line."""
    path = Path(folder) / _LOG
    with naming(path), open(path, "ab+") as log:
        if log.seek(0, os.SEEK_END):
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                log.write(b"\n")
        log.write(text.encode())
