"""What every task offers: files → examples; and examples, with the answers of a model → scores.

No TensorFlow here. The model makes rows of examples, and answers of its outputs.
"""

import abc
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import albert_keras
from albert_keras.config import AlbertConfig
from albert_keras.tasks import metrics
from albert_keras.tasks.examples import TaggedExample, TextExample, text_problem
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.labels import hold_out
from albert_keras.tasks.tables.rows import SkippedRow
from data_pipeline.errors import InputError
from data_pipeline.files import write_json_lines
from data_pipeline.settings import did_you_mean
from data_pipeline.tokenizers.tokenization import Tokenizer

_WHITE_SPACE = re.compile(r"\s+")


class Error(NamedTuple):
    """A wrong answer, as a row of a table of errors."""

    id: str
    texts: tuple[str, ...]  # the input, a text for each of `Task.fields`
    truth: str
    answer: str
    #: The probability of the model's answer; for regression the distance from the truth.
    confidence: float


class Task(abc.ABC):
    """A task as it was configured by a TaskConfig. What a kind decides stands in its class."""

    kind: str  # its name in `KINDS`
    model_name: str  # of the class of its model in `albert_keras`, an AlbertForTexts
    #: What a user gives for one example; a task that takes pairs has "pair" in addition. All are
    #: texts, except for "options", a list of texts.
    inputs: tuple[str, ...] = ("text",)
    #: What the model does, for the model card; `{texts}` and `{labels}` are replaced by what the
    #: texts are and by the number of labels.
    card_purpose: str = "answers {texts}"
    hub_pipeline: str = "text-classification"  # what the Hugging Face Hub calls this kind
    has_several_labels: bool = False  # whether a row has a value for each label, not one of them
    finds_spans: bool = False  # whether an answer is a span of a passage; scores are in percent
    compares_pairs: bool = False  # whether classes or scores of pairs of texts are predicted
    #: Name of the score that determines the best checkpoint; more is better.
    metric: str
    #: Default length of a row in tokens, S.
    usual_length: int = 128
    #: Names of the splits that are scored during training; the first one determines the best
    #: checkpoint.
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ()  # the other splits
    #: The test splits that have answers.
    labelled_tests: tuple[str, ...] = ()
    #: Whether examples are in official files, unless `train` or `dev` is given.
    is_official: bool = True
    #: Names of classes or tags in the order of their numbers; () if there are none.
    labels: tuple[str, ...] = ()
    #: Whether an example is a pair of texts.
    takes_pair: bool = False
    #: The class that the score `f1` refers to; None if there is no such class or score.
    positive_class: str | None = None

    def __init__(self, config):
        self.config = config
        #: By file, the rows that could not be used and that `skip_bad_rows` allowed to skip.
        self.skipped_rows: dict[str, list[SkippedRow]] = {}

    def skipping(self, path) -> list[SkippedRow] | None:
        """Returns a new list for the rows of a file to skip; None if such rows are an error."""
        self.skipped_rows[str(path)] = []
        return self.skipped_rows[str(path)] if self.config.skip_bad_rows else None

    def data_dir_for(self, split, files) -> str:
        """Returns `data_dir`, which must be given to read the official `files` of a split."""
        if self.config.data_dir is None:
            own = "train" if split == "train" else "dev"
            raise InputError(
                f"`data_dir` must be the folder with the files of {self.config.name}, or "
                f"`{own}` a file of examples. Received: neither, so there is no {files}."
            )
        return self.config.data_dir

    def changed(self, **changes: Any) -> "Task":
        """Returns a trained task with other settings; None is no change.

        Args:
            changes: `data_dir`, and how files are read, `encoding` and `skip_bad_rows`.
        """
        changes = {name: value for name, value in changes.items() if value is not None}
        return build_task(self.config.replace(**changes))

    @property
    def max_seq_length(self) -> int:
        """Length of a row in tokens, S."""
        return self.config.max_seq_length or self.usual_length

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of what a user gives for one example, see `inputs`."""
        return (*self.inputs, "pair") if self.takes_pair else self.inputs

    @property
    def model_class(self) -> type:
        """The class of the model, an AlbertForTexts."""
        return getattr(albert_keras, self.model_name)

    @property
    def model_settings(self) -> dict[str, Any]:
        """Arguments of the model that depend on the task."""
        return {}

    def build_preprocessor(self, tokenizer: Tokenizer) -> Any:
        """Builds the preprocessor of the model."""
        preprocessor_class = self.model_class.preprocessor_class
        return preprocessor_class(tokenizer, self.max_seq_length, **self.preprocessor_settings)

    def build_model(
        self,
        albert_config: AlbertConfig,
        tokenizer: Tokenizer | None = None,
        thresholds: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Builds the model of the task, with random weights.

        Args:
            albert_config: AlbertConfig.
            tokenizer: Of its preprocessor; without one it takes features.
            thresholds: As `fit_thresholds` returns them.
            **kwargs: As in `AlbertForTexts` and the class of the model.
        """
        preprocessor = None if tokenizer is None else self.build_preprocessor(tokenizer)
        settings = {"preprocessor": preprocessor, "thresholds": thresholds} | self.model_settings
        return self.model_class(albert_config, **settings | kwargs)

    @property
    def preprocessor_settings(self) -> dict[str, Any]:
        """Arguments of the model's preprocessor that depend on the configuration."""
        return {}

    @property
    def num_outputs(self) -> int:
        """Number of classes or tags; 1 for every other head."""
        return len(self.labels) or 1

    def read(self, split) -> list:
        """Reads "train", one of `dev_splits` or one of `test_splits`.

        Raises:
            InputError: If it cannot be read; a broken row is named by file and line.
        """
        splits = ("train", *self.dev_splits, *self.test_splits)
        if split not in splits:
            raise InputError(
                f"The split `{split}` of {self.config.name} is unknown{did_you_mean(split, splits)}"
            )
        path = {"train": self.config.train, "dev": self.config.dev}.get(split)
        if path is None and self.is_official:
            return self._read_official(split)
        if path is not None and split == "dev":
            return self.read_file(path, labelled=True)
        if not self._holds_out:
            return list(self._own_training)
        rest, held = hold_out(self._own_training, self.config.dev_share)
        return rest if split == "train" else held

    @property
    def _own_training(self):
        """All examples of the training file, including those that may be held out."""
        return self.read_file(self.config.train, labelled=True)

    @property
    def _holds_out(self):
        """Whether development examples are a part of the training file."""
        return not self.is_official and self.config.dev is None

    @abc.abstractmethod
    def read_file(self, path, labelled: bool) -> list:
        """Reads a file with the layout of the task's files, with or without answers, as `read`."""

    def read_rows(self, path) -> tuple[list, list[dict[str, Any]]]:
        """Reads a file without answers, as `read_file`, with all columns of each example by name.

        These are the columns of the file if it is a table, and otherwise what is known of an
        example.
        """
        examples = self.read_file(path, labelled=False)
        return examples, [known_fields(example) for example in examples]

    def example(self, id: str, fields: dict):
        """Returns an example without an answer, made of what `check_fields` has found to be right.

        Of the `fields`, "options" is a list of str; for tagging "words", a list of str, may replace
        "text", which is split as the training files were.
        """
        return TextExample(id, fields["text"], fields.get("pair"))

    def typed_examples(self, inputs: list[dict | str]) -> list:
        """Returns examples made from what a user types or sends, as `read` returns them.

        Args:
            inputs: A dict for each, see `fields`, or a text. A dict may have an "id" for its
                answer; otherwise it is the number in the list.

        Raises:
            InputError: If an input does not suit the task, or two have the same id.
        """
        examples: list[Any] = []
        seen: dict[str, int] = {}
        for number, fields in enumerate(inputs):
            fields = {"text": fields} if isinstance(fields, str) else fields
            try:
                examples.append(self.typed_example(number, fields))
            except InputError as error:
                location = f"Input {number + 1} of {len(inputs)}: " if len(inputs) > 1 else ""
                raise InputError(f"{location}{error}") from error
            id = examples[-1].id
            if seen.setdefault(id, number) != number:
                raise InputError(
                    f"Input {number + 1} of {len(inputs)} has the id of input {seen[id] + 1}, "
                    f"{id!r}. Ids must be different."
                )
        return examples

    def typed_example(self, number: int, fields: Any) -> Any:
        """Returns an example of a dict of fields, which may include its id; else it is `number`."""
        if not isinstance(fields, dict):
            raise InputError(f"An input must be a dict of texts by name. Received: {fields!r}.")
        fields = dict(fields)
        id = fields.pop("id", number)
        if not isinstance(id, str | int):
            raise InputError(f"`id` must be a text or a number. Received: {id!r}.")
        self.check_fields(fields)
        return self.example(str(id), fields)

    def check_fields(self, fields: dict[str, Any]) -> None:
        """Raises InputError unless `fields` has exactly the task's fields, and all are texts."""
        if set(fields) != set(self.fields):
            listing = ", ".join(f"`{name}`" for name in self.fields)
            raise InputError(
                f"An example of {self.config.name} must have {listing}. "
                f"Received: {', '.join(fields) or 'nothing'}."
            )
        for name, value in fields.items():
            is_list = name == "options"
            if is_list and not (isinstance(value, list | tuple) and len(value) > 1):
                raise InputError(f"`options` must be at least two texts. Received: {value!r}.")
            for text in value if is_list else (value,):
                check_text(name, text, may_be_blank=True)

    def columns(self, examples: list) -> dict[str, list]:
        """Returns what a model reads of examples: texts by the names of its preprocessor."""
        columns = {"text": [example.first for example in examples]}
        if self.takes_pair:
            columns["pair"] = [example.second or "" for example in examples]
        return columns

    def columns_of_strings(self, examples: list) -> dict[str, list]:
        """Returns the same as signatures of an export take it, which have no lists of words."""
        return self.columns(examples)

    def truths(self, examples: list) -> list:
        """Returns the labels of examples as `AlbertForTexts.targets_of` takes them."""
        return [example.label for example in examples]

    def targets(self, examples: list) -> Any:
        """Returns what a model learns from examples, see `AlbertForTexts.targets_of`."""
        return self.model_class.targets_of(
            self.truths(examples), self.columns(examples), self.labels
        )

    def weights(self, targets: Any) -> np.ndarray | None:
        """Returns how much the examples count in training, float32 [N]; None is 1."""
        return None

    #: What a model answers with before `fit_thresholds`, which reads all that its answers have.
    first_thresholds: Mapping[str, float] = {}

    def fit_thresholds(self, examples: list, answers: list) -> tuple[list[Any], dict[str, float]]:
        """Finds what answers depend on, on labelled examples, and answers them with it.

        For squad2 it is `null_threshold`, for several labels a threshold of each label.

        Args:
            examples: Labelled.
            answers: Of the model, with the thresholds `first_thresholds`.
        """
        return answers, {}

    @abc.abstractmethod
    def scores(self, examples, answers) -> dict[str, float]:
        """Scores answers to labelled examples; `metric` comes first."""

    def resampled(self, examples, answers) -> tuple[metrics.Metric, Any, Any]:
        """Returns `metric` as a function of right and given answers, and arrays of these, [N, ...].

        Rows are those that a bootstrap resamples; by default they are numbers of examples.
        """

        def metric(_, numbers):
            pairs = [(examples[number], answers[number]) for number in numbers]
            return self.scores(*zip(*pairs, strict=True))[self.metric]

        numbers = np.arange(len(examples))
        return metric, numbers, numbers

    def interval(self, examples, answers) -> metrics.Interval:
        """Returns the 95 % bootstrap interval of `metric` over the examples."""
        return metrics.bootstrap_interval(*self.resampled(examples, answers))

    def lead(self, examples, answers, others) -> metrics.Interval:
        """Returns the 95 % interval of what `metric` of answers is above that of other answers."""
        of_others = self.resampled(examples, others)[-1]
        return metrics.paired_interval(*self.resampled(examples, answers), of_others)

    def guesses(self, training_examples, examples) -> list[Any] | None:
        """Answers with the most frequent training answer; None if the task has no such answer."""
        return None

    def collapse(self, answers) -> str | None:
        """Reports that all answers are the same ("all 872 answers are `1`"); None if not."""
        different = {self.shown(answer) for answer in answers}
        if len(answers) < 2 or len(different) > 1:
            return None
        return f"all {len(answers)} answers are {different.pop()}"

    def shown(self, answer) -> str:
        """Returns an answer as `collapse` shows it: what comes after its id."""
        return f"`{answer[1]}`"

    def errors(self, examples, answers) -> list[Error]:
        """Returns the wrong answers, the most confident first."""
        found = (self.error(*pair) for pair in zip(examples, answers, strict=True))
        return sorted(filter(None, found), key=lambda error: -error.confidence)

    def error(self, example, answer) -> Error | None:
        """Returns what is wrong with the answer to an example; None if it is right."""
        return None

    def confusion(self, examples, answers):
        """Counts the answers for each truth: int [C, C] (rows: truth) and names, or None."""
        return None

    def write(self, folder, split, examples, answers) -> list[Path]:
        """Writes answers to the task's official files, or a line each to `predictions-SPLIT.jsonl`.

        The lines of labelled examples have the right answer, too, as `truth`.
        """
        path = Path(folder) / f"predictions-{split}.jsonl"
        pairs = zip(examples, answers, strict=True)
        write_json_lines(path, (one._asdict() | _truth_of(example) for example, one in pairs))
        return [path]


def _truth_of(example):
    """Returns the right answer of an example by its name; nothing if it is unknown."""
    truth = example.tags if isinstance(example, TaggedExample) else example.label
    return {} if truth is None else {"truth": truth}


def known_fields(example: Any) -> dict[str, Any]:
    """Returns what is known of an example by name; texts are called as in `Task.fields`."""
    names = {"first": "text", "second": "pair"}
    return {
        names.get(name, name): value
        for name, value in example._asdict().items()
        if value not in (None, (), "")
    }


def check_text(name: str, text: Any, may_be_blank: bool = False):
    """Raises InputError unless a model can read an input called `name`, see `text_problem`."""
    problem = text_problem(text, may_be_blank)
    if problem is not None:
        raise InputError(f"`{name}` {problem}")


def one_line(text: str) -> str:
    """Returns a text in one line without tabs."""
    return _WHITE_SPACE.sub(" ", text).strip()
