"""Streams of inputs are answered some at a time."""

import logging

from albert_keras.tasks.classification.regression import ScoreAnswer
from albert_keras.tasks.examples import ChoiceExample, TextExample
from albert_keras.tasks.predict import MOST_AT_A_TIME, answer_stream


def counting(sizes):
    """Returns a model that answers with the length of a text; it reads 5 letters of it."""

    def answers(examples):
        sizes.append(len(examples))
        lengths = [len(getattr(example, "first", "")) for example in examples]
        return [ScoreAnswer("0", float(length), max(0, length - 5)) for length in lengths]

    return answers


def inputs(*texts):
    return [({"text": text}, TextExample("0", text)) for text in texts]


def test_a_list_is_answered_before_the_next_one_is_read(caplog):
    read, sizes = [], []

    def lists():
        for several in (inputs("a"), inputs("bb", "c" * 7)):
            read.append(len(sizes))
            yield several

    with caplog.at_level(logging.WARNING):
        found = list(answer_stream(counting(sizes), lists()))
    assert read == [0, 1] and sizes == [1, 2]
    assert [one.answer.score for one in found] == [1, 2, 7]
    assert [one.columns["text"] for one in found] == ["a", "bb", "c" * 7]
    [message] = caplog.messages
    assert message.startswith("Truncated inputs: 1 of 3. ")


def test_large_lists_and_other_numbers_of_options_are_split():
    choices = [({}, ChoiceExample("0", "c", "q", ("a",) * count)) for count in (2, 2, 3, 2)]
    for given, expected in (
        (inputs(*["a"] * (MOST_AT_A_TIME + 1)), [MOST_AT_A_TIME, 1]),
        (choices, [2, 1, 1]),
    ):
        sizes = []
        list(answer_stream(counting(sizes), [given]))
        assert sizes == expected
