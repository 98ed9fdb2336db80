import numpy as np
import pytest

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.scores import (
    f1,
    normalize_answer,
    null_threshold,
    official_scores,
    question_scores,
)
from data_pipeline.errors import InputError


def question(id, *answers):
    return QuestionExample(id, "?", "", tuple(Answer(answer, 0) for answer in answers))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The  Cat,\tand a DOG!", "cat and dog"),
        ("an-other theme", "another theme"),
        ("“the” café’s", "“ ” café’s"),  # only ASCII punctuation goes
        ("a.n. answer", "answer"),  # punctuation goes before articles
        ("The A an", ""),
        ("٣ a\u00a0b", "٣ b"),
    ],
)
def test_answers_are_normalised(text, expected):
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    "gold, predicted, exact, first, second",
    [
        ("the Rome", "rome.", 1, 1.0, 1.0),
        ("in Rome", "Rome", 0, 2 / 3, 2 / 3),
        ("b b c", "b c c c", 0, 4 / 7, 4 / 7),
        ("Rome", "Paris", 0, 0, 0),
        ("Rome", "", 0, 0, 0),
        ("", "", 1, 0, 1),
        ("", "the", 1, 0, 1),
        ("", "Rome", 0, 0, 0),
        ("The", "", 1, 0, 1),  # articles alone are no answer
    ],
)
def test_exact_match_and_f1_of_both_versions(gold, predicted, exact, first, second):
    assert question_scores([question("1", gold)], {"1": predicted})[0] == {"1": exact}
    assert f1(gold, predicted, version=1) == pytest.approx(first, abs=1e-15)
    assert f1(gold, predicted, version=2) == pytest.approx(second, abs=1e-15)


def test_version_1_takes_the_best_answer():
    examples = [question("1", "Rome", "in Rome"), question("2", "old"), question("3", "x")]
    scores = official_scores(examples, {"1": "in Rome now", "2": "The old", "3": ""}, 1)
    assert scores == {"exact_match": 100 * 1 / 3, "f1": 100.0 * (0.8 + 1) / 3}


def test_version_1_wants_answers():
    with pytest.raises(InputError, match="'2' must have an answer"):
        official_scores([question("1", "x"), question("2")], {"1": "x"}, 1)
    with pytest.raises(InputError, match="at least one question"):
        official_scores([], {}, 1)


EXAMPLES = [question("a", "Rome"), question("b", "two cats"), question("n"), question("m")]
PREDICTIONS = {"a": "Rome", "b": "cats", "n": "", "m": "something"}


def test_version_2_splits_by_answerability():
    assert official_scores(EXAMPLES, PREDICTIONS, 2) == {
        "exact": 50.0,
        "f1": 100.0 * (1 + 2 / 3 + 1) / 4,
        "total": 4,
        "HasAns_exact": 50.0,
        "HasAns_f1": 100.0 * (1 + 2 / 3) / 2,
        "HasAns_total": 2,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }


def test_the_best_threshold_is_found_by_walking_up():
    # The sums of F1 are 2 (nothing answered), 3, 3 2/3, 2 2/3, 2 2/3.
    null_scores = {"a": -4.0, "b": -1.5, "m": 0.5, "n": 7.0}
    found = null_threshold(EXAMPLES, PREDICTIONS, null_scores)
    assert found == np.nextafter(np.float32(-1.5), np.float32(0))
    none = [question("n"), question("m")], {"n": "x", "m": "y"}, {"n": 1, "m": 2}
    assert null_threshold(*none) == 1  # no question is answered
