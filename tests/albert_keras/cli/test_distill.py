"""The mistakes of `albert-keras distill`."""

import pytest

from albert_keras.cli import main


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
