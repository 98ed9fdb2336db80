"""Ours trains as `pretrain` does; the peers are scored as ours is."""

import functools
import itertools
import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from albert_keras.conversion.convert import convert
from albert_keras.runs.log_file import read_stages
from albert_keras.training.evaluate import evaluate
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.learning import ours
from tests.benchmarks.learning.export import write_arrays
from tests.benchmarks.learning.job import Job, Recorder, read_points


def test_our_training_ends_in_time_and_its_last_point_is_the_score_of_the_run(
    tiny_records, held_out_records, tiny_training, tmp_path, monkeypatch
):
    seconds = itertools.count(0, 0.01)  # however long a step takes
    recorder = functools.partial(Recorder, now=lambda: next(seconds))
    monkeypatch.setattr(ours, "Recorder", recorder)
    config = tiny_training.model_dump(mode="json", exclude_unset=True)
    config["stages"] = [{"share": 0.5, "batch_size": 16}, {"share": 0.5}]
    settings = {
        "records": str(tiny_records), "eval_data": str(held_out_records), "config": config
    }  # fmt: skip
    job = Job(2.0, 3, 2, "float32", "", str(tmp_path / "points.jsonl"), settings)
    ours.train(job)
    points, facts = read_points(job.points)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["config"]["training"]["seed"] == 3
    assert facts["weights"] > 1000 and len(points) > 5
    times = [point["seconds"] for point in points]
    assert times == sorted(times) and 1.8 < times[-1] <= 2.0
    final = evaluate(tmp_path / "run", held_out_records)
    assert points[-1]["updates"] == final.step
    assert points[-1]["loss"] == pytest.approx(final.masked_lm_loss, rel=1e-5)
    assert points[-1]["accuracy"] == pytest.approx(final.masked_lm_accuracy)
    (_, first), (edge, _) = read_stages(tmp_path / "run")
    assert first["batch_size"] == 16
    assert points[-1]["positions"] == (edge * 16 + (final.step - edge) * 8) * 32


@pytest.fixture(scope="module")
def arrays(tiny_records, held_out_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainers") / "arrays"
    write_arrays(RecordFiles(tiny_records), RecordFiles(held_out_records), folder)
    return folder


@pytest.fixture(scope="module")
def our_score(tiny_run, held_out_records):
    found = evaluate(tiny_run, held_out_records, allow_trained_rows=True)
    return [found.masked_lm_loss, found.masked_lm_accuracy]


@pytest.fixture(scope="module")
def in_transformers(tiny_run, arrays, tmp_path_factory):
    """Returns a function that runs code with `model` and `held_out` and returns what it prints."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        pytest.skip("needs PyTorch and transformers")
    folder = tmp_path_factory.mktemp("theirs") / "model"
    convert(tiny_run, folder, to="hugging-face")
    start = (
        "import contextlib, json, sys, torch, transformers\n"
        "from tests.benchmarks.learning import batches, transformers_trainer as trainer\n"
        "model = transformers.AlbertForMaskedLM.from_pretrained(sys.argv[1])\n"
        "held_out = batches.load(sys.argv[2], 'held_out', batches.HELD_OUT)\n"
    )

    def run(code):
        words = [sys.executable, "-c", start + code, str(folder), str(arrays)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.mark.slow
def test_transformers_is_scored_as_ours_is(in_transformers, our_score):
    found = in_transformers(
        "score = trainer.build_score(model, held_out, 'cpu', contextlib.nullcontext)\n"
        "print(json.dumps(score()))\n"
    )
    np.testing.assert_allclose(found, our_score, rtol=1e-3)


@pytest.mark.slow
def test_transformers_at_masked_positions_has_the_same_loss(in_transformers):
    at_all, at_masked = in_transformers(
        "batch = batches.take(held_out, slice(0, 16), 'int64')\n"
        "batch = {name: torch.from_numpy(array) for name, array in batch.items()}\n"
        "ids = batch['input_ids']\n"
        "batch['labels'] = torch.where(torch.rand(ids.shape) < 0.15, ids, batches.IGNORED)\n"
        "losses = [trainer.loss_function(model, at, 0.15)(batch) for at in (False, True)]\n"
        "print(json.dumps([float(loss) for loss in losses]))\n"
    )
    assert at_masked == pytest.approx(at_all, rel=1e-4)
