"""`benchmark learn`, mostly with contestants that only pretend to train."""

import csv
import json
import shutil
from importlib.util import find_spec

import pytest
import yaml

from data_pipeline.errors import InputError
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks import learn
from tests.benchmarks.learning.learners import Learner, learners_for
from tests.benchmarks.learning.lines import learn_lines

#: A trainer whose updates take a tenth of the time by its own clock. Its losses are given.
PRETENDER = """
import os, pathlib
from tests.benchmarks.learning.job import Recorder

def train(job):
    attempts = pathlib.Path(job.settings["attempts"])
    attempts.write_text(attempts.read_text() + job.settings["name"] + f" {job.seed}\\n")
    if not pathlib.Path(job.settings["needs"]).exists():
        raise ValueError("a file is missing")
    clock = [0.0]
    losses = iter(job.settings["losses"])
    recorder = Recorder(job, lambda: (next(losses), 0.5), 64, now=lambda: clock[0])
    recorder.start()
    for _ in range(10):
        clock[0] += job.seconds / 10
        recorder.add_updates()
    recorder.end({"weights": 5_000_000, "versions": {"pretender": "1.0"}})
"""
#: Held-out losses after 1, 2, 3, 4, 5, 7, 9 and 10 tenths of the time.
OURS = [9.0, 8.0, 7.0, 6.0, 5.0, 4.5, 4.0, 3.9]
THEIRS = {1e-3: [9.5, 9.0, 8.5, 8.0, 7.5, 7.0, 6.6, 6.5], 1e-4: [9.9] * 8}


@pytest.fixture(scope="module")
def pretend(tmp_path_factory):
    """Replaces the contestants; returns the file that lists their attempts."""
    folder = tmp_path_factory.mktemp("pretender")
    attempts = folder / "attempts"
    attempts.write_text("")
    (folder / "pretender.py").write_text(PRETENDER)

    def learner(peer, rate, losses, needs=(), file=folder):
        label = "ours, default recipe" if peer == "ours" else f"{peer}, rate {rate:g}"
        settings = {"name": label, "attempts": str(attempts), "losses": losses, "needs": str(file)}
        return Learner(label, peer, rate, "pretender", needs, settings, "float32")

    found = [
        learner("ours", 2e-3, OURS),
        *(learner("keras-nlp", rate, losses) for rate, losses in THEIRS.items()),
        learner("keras-nlp", 3.0, [], file=folder / "missing"),
        learner("transformers", 1e-3, [], needs=("no_such_package",)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setattr(learn, "learners_for", lambda *arguments: found)
        yield attempts


@pytest.fixture(scope="module")
def measure(pretend, tiny_records, held_out_records):
    """Returns a function that measures in a folder: the result and the attempts, "label seed"."""

    def measure(out, minutes=1.0, **settings):
        pretend.write_text("")
        result = learn.benchmark_learn(tiny_records, held_out_records, out, minutes, **settings)
        return result, pretend.read_text().splitlines()

    return measure


@pytest.fixture(scope="module")
def finished(measure, tmp_path_factory):
    """Returns the folder of a round, its result and its attempts."""
    out = tmp_path_factory.mktemp("learn") / "out"
    return out, *measure(out)


@pytest.fixture
def out(finished, tmp_path):
    """Returns a copy of the folder."""
    return shutil.copytree(finished[0], tmp_path / "out")


def test_the_table_has_the_time_to_the_loss_of_the_best_peer(finished):
    out, result, _ = finished
    text = "\n".join(learn_lines(result))
    (ours,) = [line for line in text.splitlines() if line.startswith("  ours")]
    # 7.0 after 0.3 min and 6.0 after 0.4 min, so 6.5 after 0.35 min of the one minute.
    expected = "ours, default recipe 5.00 M 0.002 10 0.00 M 0.00 6.0 s 3.900 50.0 % 0.35 min 2.86"
    assert ours.split() == expected.split()
    assert "not reached" in next(line for line in text.splitlines() if "rate 0.0001 " in line)
    assert "the best peer is keras-nlp, rate 0.001, which ends at 6.500 after 1 min" in text
    assert "ours: 2.86 times as fast as the best peer" in text and "pretender 1.0" in text
    assert "transformers, rate 0.001: not installed: pip install albert-keras[bench]" in text
    assert "keras-nlp, rate 3: ValueError: a file is missing" in text
    assert "warning: other programs used the processors" in text  # the trainers only pretend
    assert result["comparison"]["ratio"]["median"] == pytest.approx(60 / 21)
    saved = json.loads((out / "results.json").read_text())
    assert saved["comparison"]["ratio"] == result["comparison"]["ratio"]


def test_the_curves_are_a_table_and_a_picture(finished):
    out = finished[0]
    with open(out / "curves.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 8
    assert rows[3] == {
        "contestant": "ours, default recipe", "rate": "0.002", "round": "1", "seconds": "24.0",
        "updates": "4", "positions": "256", "loss": "6.0", "accuracy": "0.5",
    }  # fmt: skip
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_call_runs_only_what_is_missing(finished, out, measure):
    _, first, attempts = finished
    assert len(attempts) == 4  # ours, and three rates
    ours = out / "trainings" / "round-1" / "ours" / "points.jsonl"
    points = ours.read_text().splitlines()
    ours.write_text("\n".join(points[:3]))  # as an interruption leaves it
    again, attempts = measure(out)
    assert attempts == ["ours, default recipe 12345", "keras-nlp, rate 3 12345"]
    assert again["comparison"] == first["comparison"]
    assert ours.read_text().splitlines()[:-1] == points[:-1]


def test_another_round_has_another_seed_and_runs_backwards(out, measure):
    result, attempts = measure(out, rounds=2)
    assert [line for line in attempts if "rate 3" not in line] == [
        "keras-nlp, rate 0.0001 12346", "keras-nlp, rate 0.001 12346", "ours, default recipe 12346"
    ]  # fmt: skip
    assert len(result["comparison"]["rounds"]) == 2
    assert "median of the rounds [lowest..highest]" in learn_lines(result)


def test_other_settings_need_another_folder(finished, measure, tmp_path):
    with pytest.raises(InputError, match="another value of minutes and config than in .*Choose"):
        measure(finished[0], minutes=2.0)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not empty"):
        measure(tmp_path)


def test_peers_have_the_width_and_depth_of_our_model_and_share_one_block(
    tiny_records, held_out_records, tiny_training
):
    config = tiny_training.replace(
        model=tiny_training.model | {"sharing": "none", "hidden_act": "gelu_erf"}
    )
    records = RecordFiles(tiny_records), RecordFiles(held_out_records)
    ours, *peers = learners_for(
        *records, config, "tiny", ["transformers", "transformers-masked"], (1e-3,)
    )
    assert ours.label == "ours, tiny" and ours.rate == 0.01
    assert ours.settings["config"]["model"]["sharing"] == "none"
    assert [peer.label for peer in peers] == [
        "transformers, compiled, rate 0.001",
        "transformers, compiled, masked positions, rate 0.001",
    ]  # fmt: skip
    for peer in peers:
        assert peer.settings["config"]["num_hidden_layers"] == 2
        assert peer.settings["config"]["hidden_size"] == 32
        assert peer.settings["config"]["num_hidden_groups"] == 1
        assert peer.settings["lr"] == 1e-3 and peer.precision == ours.precision
    assert peers[0].settings["config"]["architectures"] == ["AlbertForMaskedLM"]
    assert learners_for(*records, config, "tiny", []) == [ours]


def test_wrong_calls_are_refused(tiny_records, held_out_records, tmp_path, monkeypatch):
    monkeypatch.setattr(learn, "suggest_config", None)  # the machine is not measured before
    out = tmp_path / "out"
    with pytest.raises(InputError, match="Did you mean `transformers`"):
        learn.benchmark_learn(tiny_records, held_out_records, out, peers=("transformer",))
    with pytest.raises(InputError, match="must not all be training records"):
        learn.benchmark_learn(tiny_records, tiny_records, out)
    assert not out.exists()


@pytest.mark.slow
def test_all_contestants_train(tiny_records, held_out_records, tiny_training, tmp_path):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(yaml.safe_dump(tiny_training.model_dump(mode="json", exclude_unset=True)))
    result = learn.benchmark_learn(
        tiny_records, held_out_records, tmp_path / "out", 1 / 6, recipe=recipe, peer_lr=(1e-3,)
    )
    for found in result["learners"]:
        if found["peer"] == "transformers" and find_spec("torch") is None:
            assert found["failed"].startswith("not installed")
            continue
        (measured,) = found["rounds"].values()
        points = measured["points"]
        assert 2 < points[-1]["loss"] < points[0]["loss"] + 0.01, found["label"]
        # On a busy machine the first update may take longer than the whole time.
        assert points[-1]["seconds"] < 12 or points[-1]["updates"] <= 2
    (compared,) = result["comparison"]["rounds"]
    assert compared["best_peer"].endswith("rate 0.001")
