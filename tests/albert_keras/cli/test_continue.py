"""Continuing with a trained model: a larger vocabulary, initial weights."""

import json

import pytest

from albert_keras.cli import main
from albert_keras.training import pretrain as pretraining


@pytest.fixture
def domain(tmp_path):
    path = tmp_path / "domain.txt"
    path.write_text("Cardiologists read. The cardiologist reads electrocardiograms.\n" * 3)
    return str(path)


@pytest.fixture
def quick(monkeypatch):
    """Runs end at once, with their initial weights."""
    monkeypatch.setattr(pretraining, "fit", lambda *arguments, **others: 0)


def values_of(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_vocabulary_is_extended_by_command(tiny_vocabulary, domain, tmp_path, capsys):
    command = ["vocab", "extend", "--tokenizer", str(tiny_vocabulary.path), "--corpus", domain]
    assert main([*command, "--add", "2", "--out", f"{tmp_path}/t", "--json"]) == 0
    result = values_of(capsys)
    assert result["size"] == 309 and "▁cardiologist" in result["added"]
    assert main([*command, "--add", "2", "--out", f"{tmp_path}/t"]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_run_starts_from_weights_by_command(tiny_run, tiny_records, tmp_path, quick, capsys):
    command = ["pretrain", "--data", str(tiny_records), "--init-from", str(tiny_run)]
    command += ["--config", "continue", "--set", "training.batch_size=8", "--from-step", "5"]
    assert main([*command, "--out", f"{tmp_path}/run", "--debug"]) == 0
    assert "loss" not in capsys.readouterr().out  # nothing was trained: there is none to show
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["data"]["origin"] == f"{tiny_run} step 5"
    assert record["config"]["optimizer"]["lr"] == 1e-4
    assert record["albert_config"]["hidden_size"] == 32
    assert "step 5" in json.loads((tmp_path / "run" / "loaded.json").read_text())[0]
