"""Questions with options to choose from: RACE."""

from typing import NamedTuple

import numpy as np

from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.kinds import CHOICE
from albert_keras.tasks.metrics import bootstrap_interval, confusion_matrix, majority_baseline
from albert_keras.tasks.plain_predictions import mean_probabilities, one_line, write_predictions
from albert_keras.tasks.race.choice_features import make_choice_features
from albert_keras.tasks.race.files import choice_accuracy, read_race, read_race_path
from albert_keras.tasks.task import Error, Task
from data_pipeline.errors import InputError

#: Probabilities that differ by no more are equal, and the first option is taken: the last digits
#: depend on what else is computed at the same time.
EQUALLY_LIKELY = 1e-5


class ChoiceAnswer(NamedTuple):
    """The option chosen for a question.

    Attributes:
        id: str.
        choice: int. Its number, from 0.
        option: str. Its text.
        probability: float.
        probabilities: tuple of float. Those of all options.
    """

    id: str
    choice: int
    option: str
    probability: float
    probabilities: tuple[float, ...]


class ChoiceTask(Task):
    """RACE, or other questions in its files; typed ones may have any number of options."""

    kind = CHOICE
    metric = "accuracy"
    usual_length = 512
    dev_splits = ("dev",)
    test_splits = labelled_tests = ("test",)
    labels = ()

    def read(self, split):
        """Reads a split, from the file configured for it or the official ones; see `Task.read`."""
        if split not in ("train", "dev", "test"):
            raise InputError(f"`split` of race should be train, dev or test. Received: {split}.")
        given = {"train": self.config.train, "dev": self.config.dev}.get(split)
        if given:
            return self.read_file(given, labelled=True)
        if self.config.data_dir is None:
            raise InputError(
                f"race should have a `data_dir` with the folder `RACE/{split}`. Received: none."
            )
        examples = read_race(self.config.data_dir, split, self.config.levels)
        return _labelled(examples, f"{self.config.data_dir}, {split}")

    def read_file(self, path, labelled):
        """Reads a file of passages or a folder of such files; see `Task.read_file`."""
        examples = read_race_path(path, self.config.levels)
        return _labelled(examples, path) if labelled else examples

    def example(self, number, fields):
        """Makes an example of "context", "question" and "options"; see `Task.example`."""
        self.check_fields(fields)
        options = fields["options"]
        is_list = isinstance(options, (list, tuple)) and len(options) > 1
        if not is_list or not all(isinstance(option, str) for option in options):
            raise InputError(f"`options` must be at least two texts. Received: {options!r}.")
        return ChoiceExample(str(number), fields["context"], fields["question"], tuple(options))

    def features(self, examples, tokenizer, training=False, cache=None):
        """Encodes passages, questions and options; see `Task.features`."""
        usual = min(128, self.max_seq_length // 4)
        lengths = self.max_seq_length, self.config.max_qa_length or usual
        return make_choice_features(examples, tokenizer, *lengths, training, cache)

    def answers(self, examples, features, results, tuned=None):
        """Chooses; probabilities of several models are averaged. See `Task.answers`.

        Returns:
            list of ChoiceAnswer.
        """
        shape = len(examples), len(examples[0].options) if examples else 0
        return [
            _answer(example, probabilities)
            for example, probabilities in zip(
                examples, mean_probabilities(results, shape), strict=True
            )
        ]

    def scores(self, examples, answers):
        """Accuracy, 0 to 1, of all and by level; see `choice_accuracy`."""
        return choice_accuracy(examples, [answer.choice for answer in answers])

    def interval(self, examples, answers):
        """Returns the interval of accuracy; see `Task.interval`."""
        labels = np.array([example.label for example in examples])
        choices = np.array([answer.choice for answer in answers])
        return bootstrap_interval(lambda ours, theirs: (ours == theirs).mean(), labels, choices)

    def guesses(self, training_examples, examples):
        """Chooses the letter that is most often right in training."""
        labels = [example.label for example in training_examples]
        (choice,) = majority_baseline(labels, 1)
        counts = np.bincount(labels, minlength=len(training_examples[0].options))
        shares = tuple((counts / len(labels)).tolist())
        return [
            ChoiceAnswer(example.id, int(choice), example.options[choice], max(shares), shares)
            for example in examples
        ]

    def collapse(self, answers):
        """Says that all choices are the same letter; None if not."""
        choices = {answer.choice for answer in answers}
        if len(answers) < 2 or len(choices) > 1:
            return None
        return f"all {len(answers)} answers are `{_letter(choices.pop())}`"

    def errors(self, examples, answers):
        """Returns the wrong choices, the most confident first."""
        errors = [
            Error(
                example.id,
                one_line(*_asked(example)),
                _named(example, example.label),
                _named(example, answer.choice),
                answer.probability,
            )
            for example, answer in zip(examples, answers, strict=True)
            if answer.choice != example.label
        ]
        return sorted(errors, key=lambda error: -error.confidence)

    def confusion(self, examples, answers):
        """Counts which letter was chosen for which; see `Task.confusion`."""
        options = max(len(example.options) for example in examples)
        labels = [example.label for example in examples]
        choices = [answer.choice for answer in answers]
        names = tuple(_letter(number) for number in range(options))
        return confusion_matrix(labels, choices, options), names

    def write(self, folder, split, examples, answers):
        """Writes `predictions-SPLIT.jsonl`; see `write_predictions`."""
        return [write_predictions(folder, split, answers)]


def _labelled(examples, place):
    without = [example.id for example in examples if example.label is None]
    if without:
        raise InputError(
            f"In {place}, every question should have an answer. {len(without)} of "
            f"{len(examples)} have none, the first is {without[0]!r}."
        )
    return examples


def _answer(example, probabilities):
    choice = int(np.argmax(probabilities >= probabilities.max() - EQUALLY_LIKELY))
    values = tuple(probabilities.tolist())
    return ChoiceAnswer(example.id, choice, example.options[choice], values[choice], values)


def _letter(number):
    return chr(ord("A") + number)


def _named(example, number):
    return one_line(f"{_letter(number)}: {example.options[number]}")


def _asked(example):
    options = (_named(example, number) for number in range(len(example.options)))
    return example.question, " ".join(options), example.context
