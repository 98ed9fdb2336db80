"""The log of a run is sent to a tracker that was asked for, once, and to no other place."""

import json
import logging
import shutil
import sys
from types import SimpleNamespace

import pytest

from albert_keras.cli import main
from albert_keras.training import tracking
from albert_keras.training.loop.follow_log import metrics_of
from albert_keras.training.loop.log_file import LogTail
from albert_keras.training.pretrain import pretrain
from data_pipeline.errors import InputError

_VARIABLES = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "WANDB_MODE", "WANDB_PROJECT")


class Tracked:
    """A tracker that keeps what it is given."""

    runs = {}  # id -> all that was sent

    def __init__(self, known, store, title, settings):
        self.id = known or f"run-{len(self.runs)}"
        self.where = "nowhere"
        self.sent = self.runs.setdefault(self.id, [])
        self.title, self.settings = title, settings

    def log(self, step, values):
        if step in getattr(self, "broken_at", ()):
            raise ConnectionError("no route")
        self.sent.append((step, values))

    def close(self, is_complete):
        self.sent.append("complete" if is_complete else "interrupted")


@pytest.fixture
def tracked(monkeypatch):
    """Returns the runs of a stand-in for MLflow."""
    monkeypatch.setattr(Tracked, "runs", {})
    monkeypatch.setattr(tracking, "_TRACKERS", {"mlflow": Tracked})
    monkeypatch.setattr(tracking, "check_tracker", lambda name: None)
    return Tracked.runs


@pytest.fixture(autouse=True)
def no_settings_of_trackers(monkeypatch):
    for name in (*_VARIABLES, "MLFLOW_DISABLE_TELEMETRY", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def steps_of(sent):
    return [one[0] if isinstance(one, tuple) else one for one in sent]


def test_a_resumed_run_continues_the_same_tracked_run(
    tracked, tiny_records, tiny_training, held_out_records, tmp_path
):
    config = tiny_training.with_flags(track="mlflow", evaluate_every=8)
    out = tmp_path / "run"
    pretrain(tiny_records, out, config, held_out_records, max_steps=8)
    [(tracked_id, sent)] = tracked.items()
    assert steps_of(sent) == [4, 8, 8, "interrupted"]
    assert {"loss", "learning_rate", "tokens_per_second"} <= sent[0][1].keys()
    assert all(name.startswith("evaluation/") for name in sent[2][1])
    assert tracking.read_tracking(out) == {"mlflow": {"id": tracked_id, "step": 8}}
    # A killed process has sent step 8, but its newest checkpoint is from step 5.
    shutil.rmtree(next((out / "checkpoints").glob("step-*8")))
    pretrain(tiny_records, out, config, held_out_records)
    assert list(tracked) == [tracked_id]
    assert steps_of(sent)[4:] == [12, 12, "complete"]


def test_a_run_is_tracked_from_its_beginning_although_asked_late(
    tracked, unfinished_run, tiny_records, tiny_training
):
    assert not (unfinished_run / "tracking.json").exists()
    pretrain(tiny_records, unfinished_run, tiny_training.with_flags(track="mlflow"))
    assert steps_of(*tracked.values()) == [4, 8, 12, "complete"]


def test_a_tracker_that_fails_does_not_end_the_run(
    tracked, tiny_records, tiny_training, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(Tracked, "broken_at", (8,), raising=False)
    config = tiny_training.with_flags(track="mlflow")
    with caplog.at_level(logging.WARNING):
        result = pretrain(tiny_records, tmp_path / "run", config, max_steps=10)
    [warning] = [line for line in caplog.messages if "--track" in line]
    assert result.step == 10 and "failed (ConnectionError: no route)" in warning
    assert steps_of(*tracked.values()) == [4]
    monkeypatch.setattr(Tracked, "broken_at", ())
    pretrain(tiny_records, tmp_path / "run", config)
    assert steps_of(*tracked.values()) == [4, 8, 12, "complete"]


@pytest.mark.parametrize("command", ["pretrain", "finetune"])
def test_a_missing_package_is_one_error_with_the_command_that_installs_it(
    command, monkeypatch, tmp_path, capsys
):
    found = tracking.importlib.util.find_spec
    monkeypatch.setattr(
        tracking.importlib.util, "find_spec", lambda name: None if name == "wandb" else found(name)
    )
    monkeypatch.chdir(tmp_path)
    words = {
        "pretrain": ["--data", "records"],
        "finetune": ["--from", "random", "--task", "sst-2", "--data-dir", "glue"],
    }
    assert main([command, *words[command], "--out", "x", "--track", "wandb"]) == 2
    error = capsys.readouterr().err
    assert "pip install 'albert-keras[track]'" in error and "AK206" in error
    assert len(error.splitlines()) <= 5 and not list(tmp_path.iterdir())


def test_a_tracker_that_does_not_open_is_one_error(tracked, tmp_path, monkeypatch):
    def refuse(*_):
        raise ConnectionError("no route")

    monkeypatch.setattr(tracking, "_TRACKERS", {"mlflow": refuse})
    with pytest.raises(InputError, match="MLflow could not open a run for .* no route"):
        tracking.open_tracker("mlflow", tmp_path, tmp_path, "run", {})
    tracking.save_tracking(tmp_path, "mlflow", "abc", 4)
    with pytest.raises(InputError, match="the tracked run `abc` .* remove `.*tracking.json`"):
        tracking.open_tracker("mlflow", tmp_path, tmp_path, "run", {})
    (tmp_path / "tracking.json").write_text("[")
    with pytest.raises(InputError, match="is damaged"):
        tracking.read_tracking(tmp_path)


def test_metrics_are_the_numbers_of_a_line():
    line = {"step": 4, "loss": 2.5, "mlm": None, "evaluation": {"dev@2/f1": 1, "name": "x"}}
    assert metrics_of(line) == {"loss": 2.5, "evaluation/dev_2/f1": 1.0}


def test_the_tail_of_a_log_has_complete_lines_once(tmp_path):
    tail, log = LogTail(tmp_path), tmp_path / "log.jsonl"
    assert tail.new_lines() == []
    log.write_text('{"step": 1}\n{"step": 2')
    assert tail.new_lines() == [{"step": 1}] and tail.new_lines() == []
    log.write_text('{"step": 1}\n{"step": 2}\n{"step": 3}\n')
    assert tail.new_lines() == [{"step": 2}, {"step": 3}]


def test_weights_and_biases_stays_offline_unless_asked(monkeypatch, tmp_path):
    calls, logged = [], []

    def init(**settings):
        calls.append(settings)
        return SimpleNamespace(
            id=settings["id"] or "w1",
            url="https://example.org/w1",
            log=logged.append,
            define_metric=lambda *_, **__: None,
            finish=lambda exit_code: logged.append(exit_code),
        )

    wandb = SimpleNamespace(init=init, Settings=dict, api=SimpleNamespace(api_key=None))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setattr(tracking, "check_tracker", lambda name: None)
    opened = tracking.open_tracker("wandb", tmp_path, tmp_path, "books", {"a": [1]})
    opened.log(4, {"loss": 2.0})
    opened.close(False)
    tracking.save_tracking(tmp_path, "wandb", opened.id, 4)
    assert tracking.open_tracker("wandb", tmp_path, tmp_path, "books", {}).id == "w1"
    assert [(one["mode"], one["id"]) for one in calls] == [("offline", None), ("offline", "w1")]
    assert calls[0]["config"] == {"a": "[1]"} and calls[0]["dir"] == str(tmp_path)
    assert logged == [{"loss": 2.0, "step": 4}, 1]
    assert "wandb sync" in opened.where
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(InputError, match="logged in .* `wandb login`"):
        tracking.open_tracker("wandb", tmp_path, tmp_path, "books", {})
    wandb.api.api_key = "key"
    assert tracking.open_tracker("wandb", tmp_path, tmp_path, "books", {}).where.startswith("https")
    assert calls[-1]["mode"] == "online" and calls[-1]["resume"] == "allow"


def test_mlflow_keeps_a_run_in_files_of_the_run(tiny_records, tiny_training, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="the extra `track` is not installed")
    import mlflow

    config, out = tiny_training.with_flags(track="mlflow"), tmp_path / "run"
    pretrain(tiny_records, out, config, max_steps=8)
    pretrain(tiny_records, out, config)
    client = mlflow.MlflowClient(tracking_uri=(out / "mlruns").as_uri())
    [experiment] = [one for one in client.search_experiments() if one.name == "albert-keras"]
    [run] = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED" and run.info.run_name == "run"
    assert run.data.params["config.training.steps"] == "12"
    history = client.get_metric_history(run.info.run_id, "loss")
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [(one.step, one.value) for one in history] == [
        (4, log[0]["loss"]),
        (8, log[1]["loss"]),
        (12, log[2]["loss"]),
    ]
    assert not (tmp_path / "mlruns").exists()
