"""Blank texts are refused with the message of the command line."""

import numpy as np
import pytest

from albert_keras.serving.local.blank_texts import check_not_blank
from albert_keras.serving.protocol.status import StatusError
from tests.albert_keras.serving.local.client import predict
from tests.albert_keras.tasks.small_tasks import make_task

TEXT = {"serving_default"}
PAIR = {"serving_default", "text_pair"}
SPANS = {"serving_default", "question_answering"}


def inputs(**texts):
    return {name: np.array([one.encode() for one in rows], object) for name, rows in texts.items()}


@pytest.mark.parametrize(
    "name, tensors, signatures, alias",
    [
        ("serving_default", {"text": ["\u3000\n"]}, TEXT, "text"),
        ("serving_default", {"text": [" \tb"]}, PAIR, "text"),
        ("serving_default", {"text": ["Who?\t "]}, SPANS, "text"),
        ("text_pair", {"first": [""], "second": ["b"]}, PAIR, "first"),
        ("sentence_order", {"first": ["a"], "second": [" "]}, TEXT, "second"),
        ("question_answering", {"question": ["a"], "context": [""]}, SPANS, "context"),
        ("tags", {"text": ["\t"]}, TEXT, "text"),
    ],
)
def test_a_blank_text_is_refused(name, tensors, signatures, alias):
    with pytest.raises(StatusError) as caught:
        check_not_blank(name, inputs(**tensors), signatures)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert caught.value.message == f"`{alias}` must be a text. It is blank."


def test_the_row_of_several_is_named():
    with pytest.raises(StatusError, match="Row 2 of 3: `text` must be a text. It is blank."):
        check_not_blank("fill_mask", inputs(text=["a", "", "b"]), TEXT)


@pytest.mark.parametrize(
    "name, tensors, signatures",
    [
        ("serving_default", {"text": ["a\t"]}, PAIR),
        ("text_pair", {"first": ["a"], "second": [""]}, PAIR),
        ("explain_tokens", {"text": [""]}, TEXT),
        ("classify", {"inputs": [""]}, TEXT),
    ],
)
def test_other_blanks_are_answered(name, tensors, signatures):
    check_not_blank(name, inputs(**tensors), signatures)


@pytest.mark.parametrize(
    "name, tensors, alias",
    [
        ("serving_default", {"text": ["a\t "]}, "pair"),
        ("serving_default", {"text": ["a"]}, "pair"),
        ("text_pair", {"first": ["a"], "second": [""]}, "second"),
    ],
)
def test_similarity_requires_both_texts(name, tensors, alias):
    with pytest.raises(StatusError, match=f"`{alias}` must be a text. It is blank."):
        check_not_blank(name, inputs(**tensors), PAIR, requires_pair=True)


def test_the_message_is_the_one_of_the_task():
    with pytest.raises(Exception, match="^`text` must be a text. It is blank.$"):
        make_task("tagging").example(0, {"text": " "})
    with pytest.raises(Exception, match="^`context` must be a text. It is blank.$"):
        make_task("choice").example(0, {"context": "", "question": "a", "options": ["b", "c"]})


def test_the_server_refuses_a_blank_text(server):
    found = predict(server, {"instances": ["a", " "]})
    assert found.status == 400
    assert found.error == "Row 2 of 2: `text` must be a text. It is blank."
