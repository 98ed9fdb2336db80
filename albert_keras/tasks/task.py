"""What every task offers: examples → features → (a model's outputs) → answers → scores.

No TensorFlow here. The model stands between `features` and `answers`; which head it has is `kind`.
"""

import abc
from typing import Any, NamedTuple

import numpy as np

from albert_keras.tasks.kinds import FIELD_OPTIONS, TaskKind
from albert_keras.tasks.metrics import Interval
from data_pipeline.errors import InputError


class Error(NamedTuple):
    """A wrong answer, as a row of a table of errors.

    Attributes:
        id, text, truth, answer: str. `text` holds all that was asked, in one line.
        confidence: float. How wrong: the probability the model gave to its answer; of a regression
            the distance from the truth.
    """

    id: str
    text: str
    truth: str
    answer: str
    confidence: float


class Features(abc.ABC):
    """N rows for a model.

    Attributes:
        lengths: int [N]. Real pieces of each row, of several sequences the longest.
        max_seq_length: int. S.
    """

    lengths: np.ndarray
    max_seq_length: int

    def __len__(self):
        return len(self.lengths)

    @abc.abstractmethod
    def batch(self, rows, length=None) -> dict[str, np.ndarray]:
        """Lays out some rows.

        Args:
            rows: int [B].
            length: int or None. Places of each row; no less than the longest of `rows`. None is S.

        Returns:
            dict of int32 [B, length] (choice: [B, options, length]) `input_ids`, `input_mask`,
            `segment_ids`, of spans `p_mask` too; and the targets, where the examples have any:
            `labels` int32 [B] (classification, choice) or float32 [B] (regression); `tag_ids`
            int32 [B, length], -1 where nothing is scored; of spans int32 [B] `start_positions`,
            `end_positions` and `is_impossible`.
        """


class Task(abc.ABC):
    """A task as it was configured.

    Args:
        config: TaskConfig.
    """

    kind: TaskKind
    #: Name of the score that decides which checkpoint is the best; more is better.
    metric: str
    #: Pieces of a row that are usual, S.
    usual_length: int
    #: Names of splits that are scored while training goes on, of which the first decides; of those
    #: that are not; and which of the latter have answers all the same.
    dev_splits: tuple[str, ...]
    test_splits: tuple[str, ...]
    labelled_tests: tuple[str, ...] = ()
    #: Whether what is classified or scored are two texts.
    takes_pair: bool = False

    def __init__(self, config):
        self.config = config

    @property
    def max_seq_length(self) -> int:
        """Pieces of a row, S."""
        return self.config.max_seq_length or self.usual_length

    @property
    @abc.abstractmethod
    def labels(self) -> tuple[str, ...]:
        """Names of classes or tags in order of their numbers; () where there are none."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what a user gives for one example, see `example`."""
        return (*self.kind.fields, "pair") if self.takes_pair else self.kind.fields

    @property
    def num_outputs(self) -> int:
        """Classes or tags to tell apart; 1 for every other head."""
        return len(self.labels) or 1

    @abc.abstractmethod
    def read(self, split) -> list:
        """Reads "train", one of `dev_splits` or one of `test_splits`.

        Raises:
            InputError: If it cannot be read; a broken row is named by file and line.
        """

    @abc.abstractmethod
    def read_file(self, path, labelled) -> list:
        """Reads a file laid out as those of the task; InputError as `read`.

        Args:
            path: str or Path.
            labelled: bool. Whether answers are in it.
        """

    @abc.abstractmethod
    def example(self, number, fields):
        """Makes an example without an answer from what a user typed.

        Args:
            number: int. From 0; its id.
            fields: dict of str to str. "text" and "pair"; of spans "question" and "context"; of
                choice "context", "question" and "options" (list of str); of tagging "text", words
                parted by white space, or "words" (list of str). Others are an InputError.
        """

    def check_fields(self, fields):
        """Raises InputError unless `fields` has exactly the task's fields, and all are texts."""
        if set(fields) != set(self.fields):
            names = [
                f"`{name}` ({FIELD_OPTIONS[name]})" if name in FIELD_OPTIONS else f"`{name}`"
                for name in self.fields
            ]
            listing = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
            raise InputError(
                f"An example of {self.config.name} must have {listing}. "
                f"Received: {', '.join(fields) or 'nothing'}."
            )
        for name, text in fields.items():
            if name != "options" and not isinstance(text, str):
                raise InputError(f"`{name}` must be a text. Received: {text!r}.")

    @abc.abstractmethod
    def features(self, examples, tokenizer, training=False, cache=None) -> Features:
        """Lays examples out.

        Args:
            examples: list, as `read` returns.
            tokenizer: Tokenizer.
            training: bool. Whether every example has an answer that is to be learnt.
            cache: Path or None. Folder where features are kept, see `feature_cache`.
        """

    def tune(self, examples, features, results) -> dict[str, float]:
        """Finds what answers depend on besides the model: of squad2 `null_threshold`."""
        return {}

    @abc.abstractmethod
    def answers(self, examples, features, results, tuned=None) -> list[Any]:
        """Turns outputs of a model into answers.

        Args:
            examples: list.
            features: Features. Of these examples.
            results: list of dict of str to np.ndarray, see `TaskKind.outputs`. One per model; the
                predictions of several models are averaged.
            tuned: dict or None. As from `tune`.

        Returns:
            list. One named tuple per example, `id` first, whose `_asdict()` is plain JSON.
        """

    @abc.abstractmethod
    def scores(self, examples, answers) -> dict[str, float]:
        """Scores answers to labelled examples; `metric` comes first."""

    @abc.abstractmethod
    def interval(self, examples, answers) -> Interval:
        """Returns the 95 % bootstrap interval of `metric` over the examples."""

    @abc.abstractmethod
    def guesses(self, training_examples, examples) -> list[Any] | None:
        """Answers without looking: the most frequent answer in training. None where there is none.

        Returns:
            list as of `answers`, or None.
        """

    @abc.abstractmethod
    def collapse(self, answers) -> str | None:
        """Says that all answers are the same one ("all 872 answers are `1`"); None if not."""

    @abc.abstractmethod
    def errors(self, examples, answers) -> list[Error]:
        """Returns the wrong answers, the most confident first."""

    def confusion(self, examples, answers):
        """Counts what was answered for what: int [C, C] (rows: truth) and names, or None."""
        return None

    @abc.abstractmethod
    def write(self, folder, split, examples, answers) -> list:
        """Writes answers in the files of the task, or `predictions-SPLIT.jsonl`; list of Path."""
