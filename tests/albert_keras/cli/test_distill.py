"""`albert-keras distill` as a user runs it, and its mistakes."""

import json

import pytest

from albert_keras.cli import main

SMALL = ["--set", "model.embedding_size=16", "--set", "model.intermediate_size=64"]
SMALL += ["--set", "model.num_attention_heads=2", "--set", "model.max_position_embeddings=64"]
SMALL += ["--set", "model.hidden_size=32", "--set", "training.peak_tflops=1"]


@pytest.mark.slow
def test_a_student_is_trained_and_the_next_command_is_named(
    tiny_run, tiny_records, tmp_path, capsys
):
    words = ["distill", "--teacher", tiny_run, "--data", tiny_records, "--out", tmp_path / "run"]
    words += ["--student", "distilbert-tiny", "--steps", 2, "--batch-size", 8, *SMALL, "--json"]
    assert main([*map(str, words)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["step"] == 2 and result["report"]["soft_target_loss"] > 0
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["albert_config"]["pooler"] == "on_demand"
    assert record["config"]["distillation"]["cosine_weight"] == 1


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "either records (--data) or a task (--task). Received: none"),
        (["--task", "sst-2", "--data", "x"], "Received: both"),
        (["--config", "task.yaml", "--data", "x"], "Received: both"),
        (["--config", "task.yaml"], "`nowhere` does not exist"),
        (["--task", "sst-2", "--masks", "dynamic"], "`--masks` does not apply to a distillation"),
        (["--data", "x", "--temperature", "0"], "`distillation.temperature` must be greater"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "teacher").mkdir()
    (tmp_path / "teacher" / "results.json").touch()  # the folder of a fine-tuning, at first sight
    text = "task:\n  name: sst-2\n  data_dir: nowhere\ndistillation:\n  temperature: 3\n"
    (tmp_path / "task.yaml").write_text(text)
    assert main(["distill", "--teacher", "teacher", "--out", "run", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
