"""What variants lose is counted right, on texts that are the same each time."""

import json
import logging
import shutil

import pytest

from albert_keras.serving.export.checks import (
    NUM_OF_RUN,
    NUM_TEXTS,
    compare,
    loss_of,
    masked_texts,
)
from albert_keras.serving.export.source import open_source
from albert_keras.serving.predictor import Candidate
from albert_keras.tasks.classification.regression import ScoreAnswer
from albert_keras.tasks.classification.task import ClassAnswer
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import make_task

FLOAT32 = [Candidate("a", 0.5), Candidate("b", 0.8), Candidate("c", 0.6)]
VARIANT = [Candidate("a", 0.3), Candidate("b", 0.8), Candidate("d", 0.7)]


def test_differences_are_those_computed_by_hand(caplog):
    with caplog.at_level(logging.WARNING):
        loss = loss_of("bad", FLOAT32, VARIANT)
    assert loss.num_predictions == 3 and loss.agreement == pytest.approx(2 / 3)
    assert loss.mean_difference == pytest.approx((0.2 + 0.0 + 0.1) / 3)
    assert loss.largest_difference == pytest.approx(0.2)
    assert "bad answers as float32 in only 66.7 %" in caplog.text


def test_scores_are_the_same_within_a_hundredth_and_classes_by_name():
    scores = [ScoreAnswer("0", 1.0), ScoreAnswer("1", 2.0)]
    assert loss_of("s", scores, [ScoreAnswer("0", 1.009), ScoreAnswer("1", 2.1)]).agreement == 0.5
    one, other = (ClassAnswer("0", "yes", p, {"yes": p, "no": 1 - p}) for p in (0.9, 0.6))
    loss = loss_of("c", [one], [other])
    assert loss.agreement == 1 and loss.mean_difference == pytest.approx(0.3)


@pytest.mark.slow
def test_texts_of_the_documentation_have_one_word_masked_each():
    texts = masked_texts()
    assert NUM_TEXTS / 2 < len(texts) <= NUM_TEXTS
    assert all(text.split().count("[MASK]") == 1 for text in texts) and texts == masked_texts()


@pytest.mark.parametrize("kind", ["pretraining", "classification", "similarity"])
def test_a_run_in_another_precision_is_compared_with_its_export(
    kind, tiny_run, tiny_tokenizer, tiny_corpus, tmp_path
):
    run = tmp_path / "run"
    if kind == "pretraining":
        shutil.copytree(tiny_run, run)
    else:
        task = make_task(kind)
        write_run(run, task, make_model(task, tiny_tokenizer), tiny_tokenizer, tiny_corpus)
    assert compare(open_source(run), "float32", None, {}) == {}
    record = json.loads((run / "run.json").read_text())
    record["config"]["training"]["precision"] = "mixed_bfloat16"
    (run / "run.json").write_text(json.dumps(record))
    ((name, loss),) = compare(open_source(run), "float32", None, {}).items()
    assert name == "run mixed_bfloat16" and loss.num_predictions == NUM_OF_RUN
    assert 0 < loss.mean_difference < 0.05 and loss.agreement > 0.5
