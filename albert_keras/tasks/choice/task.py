"""Questions with options to choose from: RACE."""

from pathlib import Path

import numpy as np

from albert_keras.models.answers import choice_answers
from albert_keras.tasks.choice.files import LEVELS, read_race
from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.metrics import METRICS
from albert_keras.tasks.task import Error, Task


class ChoiceTask(Task):
    """RACE, or other questions in its format; typed ones may have any number of options."""

    kind, model_name = "choice", "AlbertForMultipleChoice"
    inputs = ("context", "question", "options")
    card_purpose = "chooses one of several options"
    hub_pipeline = "multiple-choice"
    metric = "accuracy"
    usual_length = 512
    test_splits = labelled_tests = ("test",)

    @property
    def preprocessor_settings(self):
        return {"max_qa_length": self.config.max_qa_length}

    def _read_official(self, split):
        root = Path(self.data_dir_for(split, f"`RACE/{split}`"))
        return self.read_file(root / "RACE" / split, labelled=True)

    def read_file(self, path, labelled):
        config, skipped = self.config, self.skipping(path)
        return read_race(path, config.levels, labelled, skipped, config.encoding)

    def example(self, id, fields):
        return ChoiceExample(id, fields["context"], fields["question"], tuple(fields["options"]))

    def columns(self, examples):
        columns = {name: [getattr(example, name) for example in examples] for name in self.inputs}
        return columns | {"options": [list(options) for options in columns["options"]]}

    def scores(self, examples, answers):
        """Returns accuracy, 0 to 1, of all questions and by level if the examples have one."""
        is_right = _is_right(examples, answers)
        levels = np.array([example.level for example in examples])
        scores = {"accuracy": float(is_right.mean())}
        for level in LEVELS:
            if (levels == level).any():
                scores[f"accuracy_{level}"] = float(is_right[levels == level].mean())
        return scores

    def resampled(self, examples, answers):
        labels = np.array([example.label for example in examples])
        return METRICS["accuracy"], labels, np.array([answer.choice for answer in answers])

    def guesses(self, training_examples, examples):
        """Chooses the letter that is most often right in training."""
        labels = [example.label for example in training_examples]
        counts = np.bincount(labels, minlength=len(training_examples[0].options))
        choice, proportions = int(counts.argmax()), (counts / len(labels)).tolist()
        ids, options = [example.id for example in examples], [one.options for one in examples]
        count = len(examples)
        return choice_answers(ids, options, [proportions] * count, [choice] * count)

    def shown(self, answer):
        return f"`{_letter(answer.choice)}`"

    def error(self, example, answer):
        if answer.choice == example.label:
            return None
        options = [f"{_letter(number)}: {option}" for number, option in enumerate(example.options)]
        texts = (example.context, example.question, " ".join(options))
        truth, given = options[example.label], options[answer.choice]
        return Error(example.id, texts, truth, given, answer.probability)


def _is_right(examples, answers):
    pairs = zip(examples, answers, strict=True)
    return np.array([example.label == answer.choice for example, answer in pairs])


def _letter(number):
    return chr(ord("A") + number)
