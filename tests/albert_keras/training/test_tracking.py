"""A tracker gets the reports of a run; one that fails or is not installed does no harm."""

import sys
import types

import pytest

from albert_keras.training.tracking import check_tracker, open_tracker
from data_pipeline.errors import InputError


@pytest.fixture
def mlflow(monkeypatch):
    """Returns what a stand-in for MLflow was sent."""
    sent = []
    module = types.ModuleType("mlflow")
    module.set_tracking_uri = lambda address: sent.append(("address", address))
    module.start_run = lambda run_name: sent.append(("run", run_name))
    module.log_params = lambda values: sent.append(("settings", values))
    module.log_metrics = lambda values, step: sent.append((step, values))
    module.end_run = lambda: sent.append(("end", None))
    module.__spec__ = types.SimpleNamespace(name="mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", module)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")  # restored afterwards
    return sent


def test_reports_are_sent_with_their_steps_and_stay_on_this_machine(mlflow, tmp_path):
    send = open_tracker("mlflow", tmp_path, {"config.training.seed": 7})
    send({"step": 4, "loss": 2.5, "gradient_norm": float("nan"), "skipped": 0})
    send(None)
    address = (tmp_path / "mlruns").as_uri()
    assert mlflow[:2] == [("address", address), ("run", tmp_path.name)]
    assert mlflow[2:] == [
        ("settings", {"config.training.seed": "7"}),
        (4, {"loss": 2.5}),
        ("end", None),
    ]


def test_a_tracker_that_fails_does_not_end_the_run(mlflow, tmp_path, monkeypatch, caplog):
    def fail(values, step):
        raise ConnectionError("no route")

    monkeypatch.setattr(sys.modules["mlflow"], "log_metrics", fail)
    send = open_tracker("mlflow", tmp_path, {})
    for step in (4, 8):
        send({"step": step, "loss": 2.5})
    assert caplog.text.count("training continues without it: no route") == 1


def test_a_tracker_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="`track=wandb` requires the package wandb"):
        check_tracker("wandb")
    check_tracker("tensorboard")
