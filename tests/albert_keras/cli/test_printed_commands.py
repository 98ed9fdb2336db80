"""Every printed command can be pasted into a shell, for names with spaces and umlauts, too."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from albert_keras.cli import app, pretrain, vocab
from albert_keras.cli.data import build
from albert_keras.machine.plan import CHOICES, plan_for_text
from data_pipeline.config import PretrainingDataConfig

RUN = Path("my runs/Größe 1")


def commands_in(lines):
    """Returns the words of the commands in printed lines, placeholders included."""
    text = [re.split(r"(?:next|then|live|serve): |, then |^ {4}", line)[-1] for line in lines]
    found = [shlex.split(line) for line in text if re.match(r"'?(albert|python|tensor)", line)]
    assert found
    return found


def test_after_a_training(typer_main):
    result = SimpleNamespace(path=RUN, report=None, step=3, seconds=1.0)
    watch, exported = commands_in(pretrain.lines_of(result))
    assert watch == ["tensorboard", "--logdir", "my runs/Größe 1/tensorboard"]
    typer_main(exported)
    assert exported[3] == str(RUN) and exported[-1] == "saved_models/gr-e-1"


def test_after_a_build(typer_main):
    counts = {"documents": 1, "predictions": 2}
    counts |= {"real_positions": 1, "positions": 2, "single_sentences_skipped": 0}
    info = SimpleNamespace(num_records=2, shards=[1], statistics=counts)
    result = SimpleNamespace(path="my/records 1", info=info, seconds=1.0, kept_text=1.0)
    for words in commands_in(build._lines(result, PretrainingDataConfig())):
        typer_main(words)
        assert words[words.index("--data") + 1] == "my/records 1"


def test_after_a_vocabulary(typer_main, tmp_path):
    corpus = tmp_path / "größere texte.txt"
    corpus.write_text("The old ferry left the harbour before sunrise.\n")
    typer_main(shlex.split(vocab._build_command(SimpleNamespace(path=RUN), [str(corpus)], "auto")))


def test_of_a_plan(typer_main, tmp_path, monkeypatch):
    monkeypatch.setattr("albert_keras.machine.plan._LEAST_CORPUS_BYTES", 1)
    (tmp_path / "größere texte.txt").write_text("Die Fähre verließ früh den Hafen.\n")
    corpus = [f"{tmp_path}/größere texte.txt"]
    for choice in CHOICES:
        hours = choice.least_hours or 0.1
        for command in plan_for_text(corpus, hours, choice.on_gpu, "prose", "de").commands:
            typer_main(shlex.split(command))


@pytest.fixture
def typer_main():
    """Returns a function that parses a command without running it."""
    import typer

    root = typer.main.get_command(app)

    def parse(words):
        command, rest = root, list(words)
        assert rest.pop(0) == "albert-keras"
        while hasattr(command, "commands") and rest and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        assert command is not root
        command.make_context(command.name, rest)

    return parse
