"""Commands as a user runs them: results, mistakes and exit codes."""

import errno
import logging
import os
import re
import signal

import pytest

from albert_keras.cli import main
from albert_keras.cli.output import report_error
from albert_keras.training.errors import TrainingStopped


@pytest.mark.parametrize("kind", [RuntimeError, EOFError])
def test_an_internal_error_has_its_own_exit_code_and_debug_its_traceback(kind, monkeypatch, capsys):
    def fail(*_):
        raise kind("broken")

    monkeypatch.setattr("data_pipeline.reports.inspection.verify_records", fail)
    assert main(["data", "verify", "records"]) == 1
    assert f"internal error: {kind.__name__}: broken" in capsys.readouterr().err
    with pytest.raises(kind, match="broken"):
        main(["data", "verify", "records", "--debug"])


def test_a_missing_module_leads_to_the_doctor(capsys):
    """Such as the backend that KERAS_BACKEND names, whose import fails within Keras."""
    report_error(ModuleNotFoundError("No module named 'jax'", name="jax"), debug=False)
    assert "`albert-keras doctor` names faults" in capsys.readouterr().err


@pytest.mark.parametrize("is_json", [False, True])
def test_what_is_printed_does_not_control_the_terminal(is_json, tmp_path, capsys):
    evil = "\x1b[2J\x07\x9b1m\u202e\udcff"
    table, settings = tmp_path / "table.csv", tmp_path / "settings.yaml"
    rows = [f"{number},{evil if number % 2 else 'ham'}" for number in range(9)]
    table.write_text("\n".join(["text,label", *rows]), errors="ignore")
    settings.write_text('"a\\e[2J": 1')
    check = ["data", "check", "--task", "classification", "--train", str(table)]
    for command in (
        [*check, "--text", "text", "--label", "label"],
        ["pretrain", "--config", str(settings), "--data", str(tmp_path), "--out", "x"],
        ["data", "verify", str(tmp_path / evil)],
        ["predict", str(tmp_path / evil), "text"],
    ):
        main([*command, *["--json"] * is_json])
        shown = "".join(capsys.readouterr())
        assert "\\u001b[2J" in shown
        assert shown.replace("\n", "").isprintable()


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"albert-keras \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_command_leaves_the_loggers_as_they_were(tmp_path):
    assert main(["data", "verify", f"{tmp_path}/nowhere"]) == 2
    logger = logging.getLogger("data_pipeline")
    assert logger.propagate and not logger.handlers and logger.level == logging.NOTSET


def test_a_stopped_training_has_the_exit_code_of_its_signal(capsys):
    for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143), (None, 143)]:
        assert report_error(TrainingStopped("runs/a", 3, number), debug=False) == code
    assert "stopped and saved `runs/a` at step 3" in capsys.readouterr().err


def test_a_full_disk_is_one_line_with_the_file_and_what_to_do(capsys):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/model.ckpt")
    assert report_error(error, debug=False) == 2
    assert capsys.readouterr().err == (
        "error: The disk is full: `run/model.ckpt` could not be written. Free some space or choose "
        "a folder on another disk.\nAK308: see docs/errors.md\n"
    )
