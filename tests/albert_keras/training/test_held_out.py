"""Held-out scores during a run choose its best checkpoint and change nothing else."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.runs.run import Run
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo


@pytest.fixture(scope="module")
def scored_run(tiny_records, held_out_records, tiny_training, tmp_path_factory):
    config = tiny_training.with_flags(evaluate_every=5)
    out = tmp_path_factory.mktemp("scored") / "run"
    return pretrain(tiny_records, out, config, eval_data=held_out_records).path


def scores(run):
    lines = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    found = {}
    for line in lines:
        if "evaluation" in line:
            found.setdefault(line["step"], line["evaluation"])  # `evaluate` adds more
    return found


@pytest.mark.slow
def test_scores_are_those_of_evaluate(scored_run, held_out_records):
    found = scores(scored_run)
    assert list(found) == [5, 10, 12]
    expected = evaluate(scored_run, held_out_records, step=12)
    for name in ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_accuracy"):
        assert found[12][name] == pytest.approx(getattr(expected, name), rel=1e-4)
    assert found[12]["loss"] == pytest.approx(
        expected.masked_lm_loss + expected.sentence_order_loss, rel=1e-4
    )


def test_the_best_checkpoint_has_the_lowest_score(scored_run):
    found = scores(scored_run)
    best = Run.open(scored_run).checkpoints.best()
    assert found[best]["loss"] == min(score["loss"] for score in found.values())
    assert Run.open(scored_run).checkpoints.choose("best") == best


def test_scoring_changes_no_weight(scored_run, tiny_run):
    readers = [
        tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(12))
        for run in (scored_run, tiny_run)
    ]
    for name in readers[0].get_variable_to_shape_map():
        np.testing.assert_array_equal(*(reader.get_tensor(name) for reader in readers))


def test_a_better_score_is_saved_between_two_checkpoints(
    tiny_records, held_out_records, tiny_training, tmp_path
):
    config = tiny_training.with_flags(evaluate_every=5, checkpoint_every=1000)
    run = pretrain(tiny_records, tmp_path / "run", config, eval_data=held_out_records).path
    found, checkpoints = scores(run), Run.open(run).checkpoints
    assert 5 in checkpoints.steps()  # the first score is the best one so far
    assert checkpoints.best() == min(found, key=lambda step: found[step]["loss"])


def test_held_out_records_need_no_labels_that_are_not_trained(
    tiny_records, held_out_records, tiny_training, tmp_path
):
    shutil.copytree(held_out_records, tmp_path / "records")
    DatasetInfo.load(held_out_records).replace(objective="none").save(tmp_path / "records")
    with pytest.raises(InputError, match="or use --set training.sentence_order_weight=0, which"):
        pretrain(tiny_records, tmp_path / "run", tiny_training, eval_data=tmp_path / "records")
    training = tiny_training.training.replace(sentence_order_weight=0.0, steps=2)
    config = tiny_training.replace(training=training)
    pretrain(tiny_records, tmp_path / "run", config, eval_data=tmp_path / "records")
    assert "sentence_order_accuracy" not in scores(tmp_path / "run")[2]
