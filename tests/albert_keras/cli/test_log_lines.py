"""Progress is a bar on a terminal, lines in a file, and JSON on request."""

import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from albert_keras.cli import main
from albert_keras.cli.log_lines import JsonLines, LogLines, TerminalLines
from data_pipeline import progress
from data_pipeline.progress import CountedProgress

_PROGRAM = """
import logging, sys, time
from albert_keras.cli import output
output.start()
logger = logging.getLogger("albert_keras.test")
from data_pipeline.progress import CountedProgress
counted = CountedProgress(logger, "evaluating", 100, "records")
time.sleep(0.6)
counted.add(50)
logger.info("checkpoint saved")
output.show({}, ["done"], False)
output.finish()
"""


@pytest.fixture
def logger():
    """Returns a logger that passes every record to the handlers that a test adds."""
    logger = logging.Logger("test", logging.DEBUG)
    yield logger
    for handler in logger.handlers:
        handler.finish()


@pytest.fixture
def clock(monkeypatch):
    """Returns a list with the time of the progress, in seconds, that can be changed."""
    now = [0.0]
    # Only the clock of this module: a server in another thread of the tests uses the real one.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def evaluate(logger, clock, seconds=30):
    """Logs the progress of 6,000 records, 300 in each second; returns the end."""
    counted = CountedProgress(logger, "evaluating", 6000, "records")
    begin = clock[0]
    for second in range(1, seconds + 1):
        clock[0] = begin + second
        counted.add(300)


def test_a_log_file_has_a_line_every_few_seconds(logger, clock):
    shown = io.StringIO()
    logger.addHandler(LogLines(shown, silence=1e9, start=1e9))
    evaluate(logger, clock, 11)
    assert shown.getvalue().splitlines() == [
        "evaluating: 1,500 of 6,000 records, ETA 15 s",
        "evaluating: 3,000 of 6,000 records, ETA 10 s",
    ]


def test_a_terminal_has_one_line_that_is_overwritten(logger, clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = io.StringIO()
    logger.addHandler(TerminalLines(shown, silence=1e9, start=1e9))
    evaluate(logger, clock, 6)
    logger.info("checkpoint saved")
    *bars, erased = shown.getvalue().split("\r")[1:]
    assert len(bars) == 6 and "\n" not in "".join(bars)
    bar = "evaluating  [######--------------]  30%  1,800/6,000 records  300/s  ETA 14 s  memory "
    assert bars[-1] == f"{bar[:79]}\x1b[K"  # as wide as the terminal
    assert erased == "\x1b[Kcheckpoint saved\n"


def test_json_has_numbers(logger, clock):
    shown = io.StringIO()
    logger.addHandler(JsonLines(shown, silence=1e9, start=1e9))
    evaluate(logger, clock, 5)
    logger.warning("step %d", 3, extra={"report": {"step": 3, "loss": 1.5}})
    logger.handlers[0].print_error("error: wrong")
    first, second, third = map(json.loads, shown.getvalue().splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info",
        "message": "evaluating: 1,500 of 6,000 records, ETA 15 s",
        "progress": {
            "action": "evaluating",
            "done": 1500,
            "total": 6000,
            "unit": "records",
            "rate": 300.0,
            "eta_seconds": 15.0,
        },
    }
    assert (second["level"], second["report"]) == ("warning", {"step": 3, "loss": 1.5})
    assert (third["level"], third["message"]) == ("error", "error: wrong")


@pytest.mark.parametrize("kind", [LogLines, TerminalLines, JsonLines])
def test_a_long_silence_is_broken_until_a_question(kind):
    shown = io.StringIO()
    lines = kind(shown, silence=0.05, start=0.02)
    time.sleep(0.3)
    lines.quiet()
    before = shown.getvalue()
    time.sleep(0.1)
    assert shown.getvalue() == before
    lines.finish()
    parts = [part for part in re.split(r"[\r\n]", before) if part]
    assert 2 <= len(parts) <= 8 and "starting" in parts[0] and "0 s" in parts[1]


def test_errors_are_json_too(tmp_path, capsys):
    command = ["data", "verify", f"{tmp_path}/nowhere", "--log-format"]
    assert main([*command, "json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    shown = json.loads(line)
    assert shown["level"] == "error" and shown["mistakes"] == ["AK106"]
    assert shown["message"].startswith(f"error: `{tmp_path}/nowhere`")
    assert main([*command, "xml"]) == 2
    assert "`--log-format` must be text or json. Received: 'xml'." in capsys.readouterr().err


def test_a_terminal_is_recognized():
    main_end, child_end = pty.openpty()
    command = [sys.executable, "-c", _PROGRAM]
    subprocess.run(command, check=True, stdout=child_end, stderr=child_end)
    os.close(child_end)
    shown = os.read(main_end, 10_000).decode()
    os.close(main_end)
    assert "50/100 records" in shown
    last = shown.replace("\x1b[K", "").splitlines()
    assert [line.split("\r")[-1] for line in last if line][-2:] == ["checkpoint saved", "done"]
