"""Streams of inputs are answered some at a time."""

from albert_keras.tasks.examples import ChoiceExample, TextExample
from albert_keras.tasks.predict import MOST_AT_A_TIME, answer_stream


def test_large_lists_and_other_numbers_of_options_are_split():
    texts = [({}, TextExample("0", "a"))] * (MOST_AT_A_TIME + 1)
    choices = [({}, ChoiceExample("0", "c", "q", ("a",) * count)) for count in (2, 2, 3, 2)]
    for inputs, expected in ((texts, [MOST_AT_A_TIME, 1]), (choices, [2, 1, 1])):
        sizes = []

        def answers(examples, sizes=sizes):
            sizes.append(len(examples))
            return examples

        assert len(list(answer_stream(answers, [inputs]))) == len(inputs) and sizes == expected
