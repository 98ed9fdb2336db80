"""The dry run of a study: runs, time and disk, and nothing written."""

import json

import pytest
import yaml

from albert_keras.cli import main
from albert_keras.research.study import updates as module
from albert_keras.research.study.planned import plan_study
from albert_keras.research.study.updates import study_cost
from tests.albert_keras.research.study.conftest import MICRO


@pytest.fixture(autouse=True)
def peak(monkeypatch):
    """Sets the measured peak to 1 TFLOP/s."""
    monkeypatch.setattr(module, "measure_peak", lambda precision, seconds: 1e12)


def test_time_and_disk_follow_from_settings(micro_study):
    planned = plan_study(micro_study(), "tiny")
    once = study_cost(planned, None, seeds=1)
    twice = study_cost(planned, None, seeds=2)
    assert [run["updates"] for run in once["runs"]] == [6, 6]
    assert twice["seconds"] == 2 * once["seconds"] > 0
    checkpoints = sum(run["checkpoint_bytes"] for run in once["runs"])
    assert twice["disk_bytes"] - once["disk_bytes"] == pytest.approx(checkpoints)
    # The sentence head makes the second run a little slower, and the minutes are for that one.
    slow = study_cost(planned, 1.0, seeds=1)
    assert slow["runs"][0]["updates"] == slow["runs"][1]["updates"]
    assert slow["runs"][1]["seconds"] == pytest.approx(60, rel=0.01)


def test_a_dry_run_writes_nothing(study_text, tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(MICRO))
    words = ["runs", "study", str(path), "--corpus", str(study_text), "--out", f"{tmp_path}/out"]
    assert main([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "Sentence tasks, for tests, scale tiny: 2 trainings, 1 of each run" in shown
    assert "disk: about" in shown and "time: about" in shown
    assert main([*words, "--dry-run", "--json", "--seeds", "3"]) == 0
    assert json.loads(capsys.readouterr().out)["seeds"] == 3
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mine.yaml"]
