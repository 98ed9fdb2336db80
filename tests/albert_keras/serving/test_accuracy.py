"""What variants lose is counted right, on texts that are the same each time."""

import logging

import pytest

from albert_keras.serving.export.accuracy import NUM_TEXTS, loss_of, masked_texts
from albert_keras.serving.predictor import Candidate
from albert_keras.tasks.classification.regression import ScoreAnswer
from albert_keras.tasks.classification.task import ClassAnswer

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


def test_texts_of_the_documentation_have_one_word_masked_each():
    texts = masked_texts()
    assert NUM_TEXTS / 2 < len(texts) <= NUM_TEXTS
    assert all(text.split().count("[MASK]") == 1 for text in texts) and texts == masked_texts()
