"""`albert-keras plan --hours` as a user gives it."""

import json
import os
import shlex

import pytest
import yaml

from albert_keras.cli import main
from albert_keras.training.config import PretrainingConfig
from data_pipeline.text.installed_docs import installed_documentation

WORDS = ["plan", "--hours", "2", "--tflops", "0.75"]


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture
def books(tmp_path, monkeypatch):
    """Returns the name of a folder with two files and 1.5 MB, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.txt").write_text("Some words. " * 100_000)
    (tmp_path / "books" / "b.txt").write_text("Some words. " * 25_000)
    (tmp_path / "books" / ".hidden").write_text("Some words. " * 100_000)
    return "books/"


def test_a_folder_is_planned_and_the_settings_are_printed(books, capsys):
    assert main([*WORDS, "--corpus", books]) == 0
    shown = capsys.readouterr().out
    for words in ("1.5 MB", "6,000 pieces", "<- chosen", "English novels", "that share one set"):
        assert words in shown
    assert "albert-keras vocab --corpus books/ --size 6000 --out tokenizer/" in shown
    assert "albert-keras pretrain --config plan.yaml --data records-128/ --out runs/" in shown


def test_the_settings_are_written_to_a_new_file(books, tmp_path, capsys):
    words = [*WORDS, "--corpus", books, "--config-out", "my plan.yaml"]
    assert main([*words, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["config_file"] == "my plan.yaml" and plan["corpus_bytes"] == 1_500_000
    assert shlex.split(plan["commands"][-1])[2:4] == ["--config", "my plan.yaml"]
    assert 0 < plan["chosen"]["expected"]["error"] and plan["assumptions"]["loss"]
    written = yaml.safe_load((tmp_path / "my plan.yaml").read_text())
    assert written == plan["config"] and PretrainingConfig.of(written).stages
    assert main(words) == 2
    error = capsys.readouterr().err
    assert "`my plan.yaml` exists" in error and "another --config-out" in error


@pytest.mark.parametrize(
    "words, says",
    [
        (["--hours", "8"], "requires either `--corpus`, or `--corpus-size`"),
        (["--hours", "8", "--corpus", "b", "--corpus-size", "1GB"], "Received: both"),
        (["--hours", "0", "--corpus-size", "1GB"], "`--hours` must be a positive number"),
        (["--hours", "nan", "--corpus-size", "1GB"], "`--hours` must be a positive number"),
        (["--hours", "8", "--corpus-size", "500kB"], "must have at least 1 MB of text"),
        (["--hours", "8", "--corpus", "no-such-folder"], "`no-such-folder` does not exist"),
        (["--corpus", "books"], "`--corpus` requires `--hours`. Without it give --corpus-size."),
        (["--config-out", "p.yaml"], "`--config-out` requires `--hours`."),
        (
            ["--hours", "8", "--corpus-size", "1GB", "--size", "albert-tiny"],
            "`--size` must not be given with `--hours`, which determines it.",
        ),
        (["--hours", "8", "--corpus-size", "1GB", "--table"], "`--table` must not be given"),
    ],
)
def test_a_mistake_is_one_error(words, says, capsys):
    assert main(["plan", *words]) == 2
    done = capsys.readouterr()
    assert not done.out and done.err.lower().count("error:") == 1 and says in done.err


def test_a_cpu_is_measured_and_another_device_is_not(capsys, monkeypatch):
    from albert_keras.training.cost import peak

    rates = {True: 2e11, False: 9e12}  # of the CPU, and of a GPU that the machine may have
    monkeypatch.setattr(peak, "measure_peak", lambda precision, seconds, on_cpu: rates[on_cpu])
    words = ["plan", "--hours", "2", "--corpus-size", "50MB"]
    assert main([*words, "--precision", "float32"]) == 0
    assert "0.2 TFLOP/s per replica, measured here in float32" in capsys.readouterr().out
    assert main([*words, "--device", "v100"]) == 0
    assert "125 TFLOP/s per replica, data sheet" in capsys.readouterr().out


def test_bytes_per_token_can_be_given(capsys):
    assert main([*WORDS, "--corpus-size", "50MB", "--bytes-per-piece", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text_tokens"] == round(50e6 / 3)


@pytest.mark.slow
def test_the_printed_commands_train_a_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    size = 0
    for number, document in enumerate(installed_documentation()):
        (tmp_path / "docs" / f"{number}.txt").write_text(document.text, encoding="utf-8")
        size += len(document.text.encode())
        if size > 1.2e6:
            break
    words = ["plan", "--hours", "1", "--corpus", "docs/", "--tflops", "0.01"]
    assert main([*words, "--config-out", "plan.yaml", "--json"]) == 0
    commands = json.loads(capsys.readouterr().out)["commands"]
    for command in commands:
        words = shlex.split(command)[1:]
        if words[0] == "pretrain":  # not for an hour
            words += ["--time-budget", "8s"]
        assert main(words) == 0, command
    log = (tmp_path / "runs" / "2x128" / "log.jsonl").read_text()
    record = json.loads((tmp_path / "runs" / "2x128" / "run.json").read_text())
    assert len(record["config"]["stages"]) == 2 and '"stage": 2' in log
    assert record["config"]["model"] == {
        "size": "albert-tiny",
        "position_embedding": "rotary",
    }
