"""What users give as labels becomes numbers, or is an error with its rule."""

import pytest

from albert_keras.models.labels import answer_edges, numbers_of
from data_pipeline.errors import InputError

PASSAGE = "At noon, not before noon."


@pytest.mark.parametrize(
    "answer, expected",
    [
        ("noon", (3, 7)),
        (" noon", (3, 7)),
        ({"text": "noon"}, (3, 7)),
        ({"text": "noon", "answer_start": 20}, (20, 24)),
        ({"text": ["noon"], "answer_start": [20]}, (20, 24)),
        ({"text": [], "answer_start": []}, None),
        ("", None),
        (None, None),
        ({"answer_start": 1}, "an object with this `text` and its `answer_start`"),
        ({"text": "noon", "answer_start": "20"}, "an object with this `text`"),
        ({"text": "noon", "answer_start": 4}, "must be in its passage"),
        ({"text": "noon", "answer_start": -4}, "must be in its passage"),
        ("night", "must be in its passage"),
        (" ", "must be in its passage"),
        (7, "must be a text of its passage"),
    ],
)
def test_an_answer_is_a_place_in_its_passage(answer, expected):
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            answer_edges(answer, PASSAGE)
        return
    assert answer_edges(answer, PASSAGE) == expected


@pytest.mark.parametrize("label", [1e39, float("nan"), 10**400, "3", None])
def test_a_number_that_a_model_cannot_learn_is_refused(label):
    assert numbers_of([3, 0.5], 1).tolist() == [3, 0.5]
    with pytest.raises(InputError, match="Label 2 of 2: it must be a number of at most 3.4e"):
        numbers_of([0.5, label], 1)
    with pytest.raises(InputError, match="Label 1 of 1: it must be a number"):
        numbers_of([[0.5, label]], 2)
