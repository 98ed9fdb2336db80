"""Answers of an exported folder, from Python."""

import pytest

from albert_keras.serving.predictor import Predictor, predict
from data_pipeline.errors import InputError


@pytest.fixture(scope="module")
def predictor(tiny_export):
    return Predictor(tiny_export)


def test_the_newest_version_answers(tiny_export, predictor):
    assert predictor.path == tiny_export / "1"
    assert Predictor(tiny_export / "1").path == tiny_export / "1"


def test_each_mask_has_its_candidates_best_first(predictor):
    first, second = predictor.fill_mask(["A [MASK] and a [MASK].", "[MASK]"], top_k=3)
    assert [len(mask) for mask in first.masks] == [3, 3] and len(second.masks) == 1
    scores = [candidate.score for candidate in first.masks[0]]
    assert scores == sorted(scores, reverse=True) and 0 < sum(scores) <= 1
    assert "[MASK]" not in first.filled_text


def test_order_is_a_probability(predictor):
    answers = predictor.sentence_order(["It began.", "It ended."], ["It ended.", "It began."])
    assert all(0 < answer.in_order < 1 for answer in answers)


def test_vectors_have_the_model_size(predictor):
    assert predictor.encode(["one", "two"]).shape == (2, 32)


def test_a_text_without_a_mask_is_refused(tiny_export):
    with pytest.raises(InputError, match=r"holds no \[MASK\]"):
        predict(tiny_export, ["nothing to fill"])


def test_too_many_candidates_are_refused(predictor):
    with pytest.raises(InputError, match="from 1 to 10"):
        predictor.fill_mask(["[MASK]"], top_k=11)


def test_a_folder_without_an_export_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no exported model"):
        Predictor(tmp_path)
