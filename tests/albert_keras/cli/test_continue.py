"""`albert-keras pretrain --init-from`: a run that starts from trained weights."""

import json

from albert_keras.cli import main
from albert_keras.training import pretrain as pretraining


def test_a_run_starts_from_weights_by_command(
    tiny_run, tiny_records, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(pretraining, "fit", lambda *arguments, **others: 0)  # it ends at once
    command = ["pretrain", "--data", str(tiny_records), "--init-from", str(tiny_run)]
    command += ["--config", "continue", "--set", "training.batch_size=8", "--from-step", "5"]
    assert main([*command, "--out", f"{tmp_path}/run", "--debug"]) == 0
    assert "loss" not in capsys.readouterr().out  # nothing was trained: there is none to show
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["data"]["origin"] == f"{tiny_run} step 5"
    assert record["config"]["optimizer"]["lr"] == 1e-4
    assert record["albert_config"]["hidden_size"] == 32
    assert "step 5" in json.loads((tmp_path / "run" / "loaded.json").read_text())[0]
