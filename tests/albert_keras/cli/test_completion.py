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
def test_help_takes_little_more_than_the_libraries_that_it_needs(words):
    """Measured in the process, so that the load of the machine counts little; the best of five.

    On a machine where the libraries take 0.15 s, this is about half a second.
    """
    code = (
        "import sys, time; import typer, pydantic, yaml; libraries = time.process_time(); "
        "from albert_keras.cli import main; main(sys.argv[1:]); "
        "print(time.process_time() / libraries, file=sys.stderr)"
    )
    ratios = []
    while len(ratios) < 5 and min(ratios, default=9) > 3.5:
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "Usage: albert-keras" in done.stdout
        ratios.append(float(done.stderr.split()[-1]))
    assert min(ratios) <= 3.5
