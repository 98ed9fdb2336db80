"""The shell completes commands and options, without TensorFlow and without touching a run."""

import subprocess
import sys

import pytest

from albert_keras.cli import main


def completed(monkeypatch, capsys, *words):
    """Returns what bash is offered for the last of some words."""
    monkeypatch.setenv("_ALBERT_KERAS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(["albert-keras", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    return capsys.readouterr().out.split()


def test_commands_are_completed(monkeypatch, capsys):
    assert completed(monkeypatch, capsys, "pre") == ["pretrain", "predict"]
    assert completed(monkeypatch, capsys, "runs", "re") == ["report", "remove"]


def test_options_are_completed_after_unfinished_and_repeated_ones(monkeypatch, capsys):
    words = ["pretrain", "--data", "a", "--data", "b", "--chec"]
    assert completed(monkeypatch, capsys, *words) == ["--checkpoint-every"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(monkeypatch, capsys, shell):
    monkeypatch.setenv("_ALBERT_KERAS_COMPLETE", f"source_{shell}")
    assert main([]) == 0
    assert "_ALBERT_KERAS_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--help"], ["pretrain", "--help"]])
def test_help_takes_half_a_second_of_processor_time(words):
    """Measured in the process, so that the load of the machine counts little; the best of five."""
    code = (
        "import sys, time; from albert_keras.cli import main; main(sys.argv[1:]); "
        "print(time.process_time(), file=sys.stderr)"
    )
    seconds = []
    while len(seconds) < 5 and min(seconds, default=1) > 0.5:
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "Usage: albert-keras" in done.stdout
        seconds.append(float(done.stderr.split()[-1]))
    assert min(seconds) <= 0.5
