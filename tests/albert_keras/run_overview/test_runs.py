"""The runs of a folder are listed, compared, drawn and removed; what is no run is left alone."""

import json
import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from albert_keras.cli import main
from albert_keras.config import AlbertConfig
from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.results import FinetuneResult, SeedResult, save_results
from albert_keras.run_overview.comparison import compare_runs
from albert_keras.run_overview.removal import remove_run
from albert_keras.run_overview.summary import DAMAGED, find_runs, summarize
from albert_keras.tasks.metrics import Interval
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError


def record_of(kind, config, shape):
    return {
        "kind": kind,
        "config": config.model_dump(mode="json"),
        "albert_config": shape.to_dict(),
        "data": {"fingerprint": "ab", "path": "records"},
        "tokenizer_digest": "cd",
    }


def write_run(folder, kind, config, shape, log):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(record_of(kind, config, shape)))
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    (folder / "checkpoint").write_bytes(bytes(5000))


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with two pre-trainings, a fine-tuning with two seeds, and other files."""
    root = tmp_path / "all"
    for name, lr, hidden in (("a", 0.001, 256), ("deep/b", 0.002, 128)):
        config = PretrainingConfig(
            model={"size": "albert-mini", "hidden_size": hidden},
            training={"steps": 20},
            optimizer={"lr": lr},
        )
        log = [
            {"step": step, "loss": 9 - lr * step, "masked_lm_accuracy": 0.1, "seconds": 60.0}
            for step in (5, 10)
        ]
        if name == "a":
            log.append({"step": 10, "evaluation": {"masked_lm_accuracy": 0.25}})
        write_run(root / name, "pretraining", config, config.albert_config(30_000), log)
    config = FinetuneConfig(task={"name": "sst-2"}, training={"steps": 30})
    for seed in (1, 2):
        log = [
            {"step": 30, "loss": 0.5, "answer_accuracy": 0.8, "seconds": 30.0},
            {"step": 30, "evaluation": {"accuracy": 0.8}},
        ]
        path = root / "tuned" / f"seed-{seed}"
        write_run(path, "finetuning", config, AlbertConfig.from_name("albert-mini"), log)
    seeds = tuple(
        SeedResult(seed, f"seed-{seed}", 30, 30, {"dev": {"accuracy": score}}, Interval(0.7, 0.9))
        for seed, score in ((1, 0.8), (2, 0.85))
    )
    save_results(root / "tuned", FinetuneResult("tuned", "sst-2", "accuracy", seeds))
    (root / "records").mkdir()
    (root / "records" / "dataset_info.json").write_text("{}")
    return root


def test_the_list_has_every_run_once(folder):
    runs = {run.path.removeprefix(f"{folder}/"): run for run in find_runs(folder)}
    assert list(runs) == ["a", "deep/b", "tuned"]
    first, second, tuned = runs.values()
    assert (first.kind, first.model) == ("pretraining", "albert-mini")
    assert (first.step, first.steps, first.seconds) == (10, 20, 120.0)
    assert first.score == 0.25 and first.is_held_out and first.bytes > 5000
    assert second.model.endswith("*") and second.score == 0.1 and not second.is_held_out
    assert (tuned.kind, tuned.metric, tuned.score) == ("finetuning", "accuracy", 0.85)
    assert (tuned.step, tuned.seconds, tuned.model) == (30, 60.0, "albert-mini")
    with pytest.raises(InputError, match="does not exist"):
        find_runs(folder / "nowhere")


@pytest.mark.parametrize(
    "file, text, reason",
    [
        ("run.json", '{"config": 3}', "run.json` is damaged"),
        ("log.jsonl", '{"step": 5}\n{"ste', "the log is damaged"),
    ],
)
def test_a_damaged_run_is_listed_with_the_reason(folder, file, text, reason):
    (folder / "a" / file).write_text(text)
    damaged = find_runs(folder)[0]
    assert damaged.kind == DAMAGED and reason in damaged.problem and damaged.bytes > 5000


def test_a_comparison_has_the_settings_that_differ_and_all_scores(folder):
    seen = compare_runs([folder / "a", folder / "deep/b"])
    assert seen.settings["config.optimizer.lr"] == [0.001, 0.002]
    assert seen.settings["albert_config.hidden_size"] == [256, 128]
    assert "config.training.steps" not in seen.settings
    assert seen.scores["masked_lm_accuracy"] == [0.25, None]
    assert seen.scores["training loss"] == [8.99, 8.98]
    with pytest.raises(InputError, match="Two or more different runs"):
        compare_runs([folder / "a", folder / "a"])
    with pytest.raises(InputError, match="is not a run"):
        compare_runs([folder / "a", folder / "records"])


def test_a_setting_that_an_older_run_lacks_has_its_default(folder):
    path = folder / "deep" / "b" / "run.json"
    record = json.loads(path.read_text())
    del record["config"]["optimizer"]["momentum"]
    path.write_text(json.dumps(record))
    seen = compare_runs([folder / "a", folder / "deep/b"])
    assert "config.optimizer.momentum" not in seen.settings


def test_the_curves_of_several_runs_are_in_one_picture(folder, monkeypatch, capsys):
    figures, savefig = [], Figure.savefig

    def keep(figure, *args, **words):
        figures.append(figure)
        savefig(figure, *args, **words)

    monkeypatch.setattr(Figure, "savefig", keep)
    out = folder / "new" / "ab.png"
    command = ["runs", "plot", f"{folder}/a", f"{folder}/deep/b", "--out", str(out)]
    assert main(command) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    loss = figures[0].axes[0]
    assert [line.get_label() for line in loss.get_lines()] == ["a", "deep/b"]
    assert loss.get_lines()[1].get_ydata().tolist() == [9 - 0.01, 9 - 0.02]
    assert len({line.get_color() for line in loss.get_lines()}) == 2
    assert main(command) == 2 and "--overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert main(["runs", "plot", f"{folder}/a", f"{folder}/tuned", "--out", f"{out}2"]) == 2
    assert "must be of one kind" in capsys.readouterr().err


def test_only_runs_are_removed(folder, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(folder / "a")
    for path, reason in (
        (folder, "is not a run"),
        (folder / "records", "is not a run"),
        (folder / "a" / "run.json", "must be the folder of a run"),
        (folder / "tuned" / "seed-1", "is a part of the fine-tuning"),
        (link, "is a link"),
    ):
        with pytest.raises(InputError, match=reason):
            remove_run(path)
        assert path.exists()
    removed = remove_run(folder / "a")
    assert removed.step == 10 and not (folder / "a").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["deep", "records", "tuned"]


def test_nothing_is_removed_if_one_of_several_is_no_run(folder, capsys):
    assert main(["runs", "remove", f"{folder}/a", f"{folder}/records", "--yes"]) == 2
    assert "`albert-keras runs list` shows" in capsys.readouterr().err
    assert (folder / "a").exists()


def test_removing_asks_first(folder, monkeypatch, capsys):
    command = ["runs", "remove", f"{folder}/a", f"{folder}/tuned"]
    assert main(command) == 2
    assert "`--yes` is required" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *words, **how: False)
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "step 10" in shown and "nothing was removed" in shown and (folder / "a").exists()
    assert main([*command, "--yes", "--json"]) == 0
    assert [run["kind"] for run in json.loads(capsys.readouterr().out)] == [
        "pretraining",
        "finetuning",
    ]
    assert not (folder / "a").exists() and not (folder / "tuned").exists()


def test_commands_print_tables(folder, capsys):
    assert main(["runs", "list", str(folder)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["run", "kind", "model", "step", "score", "time", "disk"]
    assert "10/20" in shown[1] and "masked_lm_accuracy 0.250" in shown[1]
    assert "(training)" in shown[2] and shown[-1].startswith("3 runs in ")
    assert main(["runs", "compare", f"{folder}/a", f"{folder}/deep/b"]) == 0
    shown = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in shown if line]
    assert ["config.optimizer.lr", "0.001", "0.002"] in rows
    assert ["masked_lm_accuracy", "0.2500", "-"] in rows
    assert main(["runs", "list", str(folder / "records")]) == 0
    assert capsys.readouterr().out.startswith("0 runs in ")


def test_lists_and_pictures_import_no_tensorflow(folder):
    code = (
        "import sys; from albert_keras.cli import main; f = sys.argv[1]\n"
        "assert main(['runs', 'list', f]) == 0\n"
        "assert main(['runs', 'plot', f + '/a', f + '/deep/b', '--out', f + '/p.png']) == 0\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(folder)], check=True, capture_output=True)


def test_a_summary_of_a_run_that_has_not_reported_yet(folder):
    (folder / "a" / "log.jsonl").unlink()
    seen = summarize(folder / "a")
    assert (seen.kind, seen.step, seen.score, seen.seconds) == ("pretraining", 0, None, 0)
