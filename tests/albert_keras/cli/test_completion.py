"""The shell completes commands and options, without TensorFlow and without touching a run."""

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
    assert completed(monkeypatch, capsys, "runs", "re") == ["report"]


def test_options_are_completed(monkeypatch, capsys):
    words = ["pretrain", "--data", "a", "--chec"]
    assert completed(monkeypatch, capsys, *words) == ["--checkpoint-every"]
