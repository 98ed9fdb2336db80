"""The runs of a folder are listed."""

import json
import re

import pytest

from albert_keras.cli import main
from albert_keras.reports.overview import find_runs, read_run, summarize
from data_pipeline.errors import InputError


def test_the_list_has_every_run_once(folder):
    runs = {run.path.removeprefix(f"{folder}/"): run for run in find_runs(folder)}
    assert list(runs) == ["a", "deep/b", "tuned"]
    first, second, tuned = runs.values()
    assert (first.kind, first.model) == ("pretraining", "albert-mini")
    assert (first.step, first.steps, first.seconds) == (10, 20, 120.0)
    assert first.score == 0.25
    assert second.model.endswith("*") and second.score is None
    assert (tuned.kind, tuned.metric, tuned.score) == ("finetuning", "accuracy", 0.85)
    assert (tuned.step, tuned.seconds, tuned.model) == (30, 60.0, "albert-mini")
    with pytest.raises(InputError, match="does not exist"):
        find_runs(folder / "nowhere")


def test_a_damaged_run_is_told_with_the_reason(folder, caplog):
    (folder / "a" / "run.json").write_text('{"config": 3}')
    with pytest.raises(InputError, match="run.json` is damaged"):
        read_run(folder / "a")
    with pytest.raises(InputError, match="is not a run"):
        read_run(folder / "records")
    assert len(find_runs(folder)) == 2
    assert f"`{folder}/a` is not listed" in caplog.text
    assert "run.json` is damaged" in caplog.text


def test_the_command_prints_a_table(folder, capsys):
    assert main(["runs", "list", str(folder)]) == 0
    shown = capsys.readouterr().out.splitlines()
    header = ["run", "kind", "model", "step", "score", "time"]
    assert re.split("  +", shown[0]) == header
    assert shown[1].split()[:3] == [f"{folder}/a", "pretraining", "albert-mini"]
    assert "10/20" in shown[1] and "masked_lm_accuracy 0.250" in shown[1]
    assert "pretraining" in shown[2] and shown[-1].startswith("3 runs in ")
    assert main(["runs", "list", str(folder / "records")]) == 0
    assert capsys.readouterr().out.startswith("0 runs in ")


def test_a_run_with_a_time_budget_has_no_number_of_steps(folder, capsys):
    path = folder / "a"
    record = json.loads((path / "run.json").read_text())
    record["config"]["training"] |= {"steps": 4987, "time_budget": "2m"}
    (path / "run.json").write_text(json.dumps(record))
    assert summarize(read_run(path)).steps is None
    assert main(["runs", "list", str(folder)]) == 0
    assert "4,987" not in capsys.readouterr().out
