"""Questions with options to choose from: RACE."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.tasks.choice.files import LEVELS, read_race
from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.features import logits_of, with_dropped_tokens
from albert_keras.tasks.labels import check_answered
from albert_keras.tasks.metrics import METRICS, confusion_matrix
from albert_keras.tasks.pair_features import EncodedPairs, PairFeatures, encode_texts
from albert_keras.tasks.task import Error, Task
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Probabilities that differ by no more are equal, and the first option is chosen: the last digits
#: depend on what else is computed at the same time.
EQUALLY_LIKELY = 1e-5
# The blank of a question: the underscore and the characters that clean-up turns into one.
_BLANK = re.compile("[_\ufe33\ufe34\ufe4d-\ufe4f\uff3f]")


class ChoiceAnswer(NamedTuple):
    """The option chosen for a question."""

    id: str
    choice: int  # its number, from 0
    option: str  # its text
    probability: float
    probabilities: tuple[float, ...]  # of all options
    #: Tokens of passage, question and option that the model did not read; of the options the most.
    dropped_tokens: int = 0


class ChoiceTask(Task):
    """RACE, or other questions in its format; typed ones may have any number of options."""

    kind, model_name = "choice", "AlbertForMultipleChoice"
    inputs = ("context", "question", "options")
    targets = {"labels": "int32"}
    card_purpose = "chooses one of several options"
    hub_pipeline = "multiple-choice"
    has_options = True
    metric = "accuracy"
    usual_length = 512
    test_splits = labelled_tests = ("test",)

    @property
    def preprocessor_settings(self):
        return {"max_qa_length": self.config.max_qa_length}

    def _read_official(self, split):
        root = Path(self.data_dir_for(split, f"`RACE/{split}`"))
        inside = root / "RACE"
        return self.read_file((inside if inside.is_dir() else root) / split, labelled=True)

    def read_file(self, path, labelled):
        config, skipped = self.config, self.skipping(path)
        return read_race(path, config.levels, labelled, skipped, config.encoding)

    def example(self, number, fields):
        """Returns an example of "context", "question" and "options"; see `Task.example`."""
        self.check_fields(fields)
        options = fields["options"]
        is_list = isinstance(options, (list, tuple)) and len(options) > 1
        if not is_list or not all(isinstance(option, str) for option in options):
            raise InputError(f"`options` must be at least two texts. Received: {options!r}.")
        return ChoiceExample(str(number), fields["context"], fields["question"], tuple(options))

    def with_truth(self, example, truth):
        if type(truth) is not int or not 0 <= truth < len(example.options):
            raise InputError(
                f"The label must be the number of an option, 0 to {len(example.options) - 1}. "
                f"Received: {truth!r}."
            )
        return example._replace(label=truth)

    def features(self, examples, tokenizer, training=False):
        if not examples:
            raise InputError("There must be at least one question. Received: none.")
        if training:
            check_answered(examples)
        length = self.max_seq_length
        max_qa_length = self.config.max_qa_length or min(128, length // 4)
        pairs = encode_choices(examples, tokenizer, length, max_qa_length)
        labels = [example.label for example in examples]
        labels = None if None in labels else np.array(labels, np.int32)
        return PairFeatures(pairs, tokenizer, length, labels, len(examples[0].options))

    def answers(self, examples, features, outputs, tuned=None):
        """Returns ChoiceAnswers; see `Task.answers`."""
        shape = len(examples), len(examples[0].options) if examples else 0
        rows = scipy.special.softmax(logits_of(outputs, shape), axis=-1)
        choices = [int(np.argmax(row >= row.max() - EQUALLY_LIKELY)) for row in rows]
        return with_dropped_tokens(chosen(examples, choices, rows.tolist()), features)

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
        return chosen(examples, [choice] * len(examples), [proportions] * len(examples))

    def shown(self, answer):
        return f"`{_letter(answer.choice)}`"

    def error(self, example, answer):
        if answer.choice == example.label:
            return None
        options = [f"{_letter(number)}: {option}" for number, option in enumerate(example.options)]
        texts = (example.context, example.question, " ".join(options))
        truth, given = options[example.label], options[answer.choice]
        return Error(example.id, texts, truth, given, answer.probability)

    def confusion(self, examples, answers):
        options = max(len(example.options) for example in examples)
        labels = [example.label for example in examples]
        choices = [answer.choice for answer in answers]
        names = tuple(_letter(number) for number in range(options))
        return confusion_matrix(labels, choices, options), names


def chosen(examples: list, choices: list[int], probabilities: list) -> list[ChoiceAnswer]:
    """Returns the answers with these options, and the probabilities of all options."""
    return [
        ChoiceAnswer(example.id, choice, example.options[choice], row[choice], tuple(row))
        for example, choice, row in zip(examples, choices, probabilities, strict=True)
    ]


def choice_text(question: str, option: str) -> str:
    """Returns the question with an option in its blanks, or followed by it if it has none.

    A blank is `_`, or any other low line that clean-up turns into one.
    """
    question, option = question.strip(), option.strip()
    filled, blanks = _BLANK.subn(lambda _: option, question)
    return filled if blanks else f"{question} {option}"


def encode_choices(
    examples: list[ChoiceExample], tokenizer: Tokenizer, max_seq_length: int, max_qa_length: int
) -> EncodedPairs:
    """Encodes `[CLS] passage [SEP] question with option [SEP]` for every option.

    The last `max_qa_length` tokens of question and option are read, and the first ones of the
    passage.

    Returns:
        N * C pairs, the C options of a question one after another.

    Raises:
        InputError: If lengths do not fit or the examples have different numbers of options.

    Source:
        `convert_single_example` in google-research/albert, `race_utils.py`.
    """
    counts = {len(example.options) for example in examples}
    if len(counts) > 1:
        raise InputError(
            f"All questions must have the same number of options. Received: {sorted(counts)}."
        )
    num_special = tokenizer.num_special
    if not 1 <= max_qa_length < max_seq_length - num_special:
        raise InputError(
            f"`max_qa_length` must be at least 1 and less than `max_seq_length` - {num_special}. "
            f"Received: max_qa_length={max_qa_length}, max_seq_length={max_seq_length}."
        )
    texts = [example.context for example in examples for _ in example.options]
    texts += [
        choice_text(example.question, option) for example in examples for option in example.options
    ]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    starts, lengths = starts.reshape(2, -1).T.copy(), lengths.reshape(2, -1).T.copy()
    totals = lengths.sum(axis=1)
    surplus = np.maximum(lengths[:, 1] - max_qa_length, 0)
    starts[:, 1] += surplus
    lengths[:, 1] -= surplus
    lengths[:, 0] = np.minimum(lengths[:, 0], max_seq_length - num_special - lengths[:, 1])
    return EncodedPairs(ids, starts, lengths, totals - lengths.sum(axis=1))


def _is_right(examples, answers):
    pairs = zip(examples, answers, strict=True)
    return np.array([example.label == answer.choice for example, answer in pairs])


def _letter(number):
    return chr(ord("A") + number)
