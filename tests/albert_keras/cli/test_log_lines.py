"""Progress is one line on a terminal, lines in a file, and JSON on request."""

import io
import json
import logging
import sys
from types import SimpleNamespace

import pytest

from albert_keras.cli import main, output
from albert_keras.cli.log_lines import JsonLines, LogLines, TerminalLines
from data_pipeline import progress
from data_pipeline.progress import CountedProgress


@pytest.fixture
def logged(monkeypatch):
    """Returns a function that logs the progress of 6,000 records, 300 in each second.

    It returns its logger, and a function that gives what was shown so far.
    """
    now = [0.0]
    # Only the clock of this module: a server in another thread of the tests uses the real one.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def log(kind, seconds):
        logger, stream = logging.Logger("test", logging.DEBUG), io.StringIO()
        logger.addHandler(kind(stream))
        now[0] = 0.0
        counted = CountedProgress(logger, "evaluating", 6000, "records")
        for second in range(1, seconds + 1):
            now[0] = second
            counted.add(300)
        return logger, stream.getvalue

    return log


def test_a_log_file_has_a_line_every_few_seconds(logged):
    _, shown = logged(LogLines, 4)
    assert not shown()
    _, shown = logged(LogLines, 11)
    assert shown().splitlines() == [
        "evaluating: 1,500 of 6,000 records, ETA 15 s",
        "evaluating: 3,000 of 6,000 records, ETA 10 s",
    ]


def test_a_terminal_has_one_line_that_is_overwritten(logged, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    logger, shown = logged(TerminalLines, 11)
    logger.info("checkpoint saved")
    first, second, erased = shown().split("\r")[1:]
    line = "evaluating: 1,500 of 6,000 records, ETA 15 s"
    assert first == f"{line[:39]}\x1b[K"  # as wide as the terminal
    assert second.startswith("evaluating: 3,000 of") and "\n" not in second
    assert erased == "\x1b[Kcheckpoint saved\n"


def test_json_has_numbers(logged):
    logger, shown = logged(JsonLines, 5)
    logger.warning("step %d", 3, extra={"report": {"step": 3, "loss": 1.5}})
    logger.error("error: wrong")
    first, second, third = map(json.loads, shown().splitlines())
    assert first.pop("time").endswith("+00:00")
    state = {"action": "evaluating", "done": 1500, "total": 6000, "unit": "records"}
    assert first == {
        "level": "info",
        "message": "evaluating: 1,500 of 6,000 records, ETA 15 s",
        "progress": state | {"rate": 300.0, "eta_seconds": 15.0},
    }
    assert (second["level"], second["report"]) == ("warning", {"step": 3, "loss": 1.5})
    assert (third["level"], third["message"]) == ("error", "error: wrong")


def test_errors_are_json_too(tmp_path, capsys):
    command = ["data", "verify", f"{tmp_path}/nowhere", "--log-format"]
    assert main([*command, "json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    shown = json.loads(line)
    assert shown["level"] == "error" and shown["mistakes"] == ["AK106"]
    assert shown["message"].startswith(f"error: `{tmp_path}/nowhere`")
    assert main([*command, "xml"]) == 2
    assert "'xml' is not one of 'text', 'json'" in capsys.readouterr().err


def test_a_terminal_is_recognized(monkeypatch):
    for is_terminal, kind in ((True, TerminalLines), (False, LogLines)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        output.start()
        assert type(output._progress) is kind
        output.finish()
