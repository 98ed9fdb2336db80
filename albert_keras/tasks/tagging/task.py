"""Tagging of words: entities, parts of speech, and any other tags of words."""

import functools
import operator
from typing import Any

import numpy as np

from albert_keras.models.answers import TagAnswer
from albert_keras.models.labels import label_ids
from albert_keras.tasks import metrics
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.labels import check_labels
from albert_keras.tasks.tagging.files import read_tagged
from albert_keras.tasks.tagging.scores import (
    entity_counts,
    entity_scores,
    has_entities,
)
from albert_keras.tasks.task import Error, Task, check_text
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.words import GIVEN_WORDS


class TagTask(Task):
    """Tagging of a user's own sentences, in columns or in .jsonl, see `read_tagged`.

    `text` and `label` of the configuration are the numbers of the columns of words and tags, by
    default the first and the last.
    """

    kind, model_name = "tagging", "AlbertForTokenClassification"
    inputs = ("text",)
    card_purpose = "assigns one of {labels} tags to each word"
    hub_pipeline = "token-classification"
    is_official = False

    def __init__(self, config):
        super().__init__(config)
        if config.pair is not None:
            raise InputError(f"Tagging takes no `pair`. Received: {config.pair}.")
        if config.labels is not None:
            check_labels(config.labels, "`labels`")

    @property
    def model_settings(self):
        return {"labels": self.labels}

    @property
    def preprocessor_settings(self):
        return {"word_split": self.config.word_rule}

    @property
    def metric(self):
        return "entity_f1" if has_entities(self.labels) else "accuracy"

    @functools.cached_property
    def labels(self):
        if self.config.labels:
            return self.config.labels
        dev = self._read(self.config.dev, True, ()) if self.config.dev else []
        examples = [*self._own_training, *dev]
        names = tuple(sorted({tag for example in examples for tag in example.tags}))
        check_labels(names, f"The tags in `{self.config.train}`")
        return names

    def read_file(self, path, labelled):
        return self._read(path, labelled, self.labels if labelled else ())

    def _read(self, path, labelled, known):
        config = self.config
        return read_tagged(
            path,
            config.text,
            config.label,
            labelled,
            known,
            config.encoding,
            self.skipping(path),
            config.word_rule,
            config.offsets,
        )

    def check_fields(self, fields):
        if list(fields) not in (["text"], ["words"]):
            raise InputError(
                "A sentence must have either `text` or `words`. "
                f"Received: {', '.join(fields) or 'nothing'}."
            )
        if "text" in fields:
            check_text("text", fields["text"], may_be_blank=True)
            return
        words = fields["words"]
        if not isinstance(words, list | tuple) or not words or not all(words):
            raise InputError(
                f"`words` must be a list of words, none of them empty. Received: {words!r}."
            )
        for word in words:
            check_text("words", word, may_be_blank=True)

    def example(self, id, fields):
        return TaggedExample(id, tuple(fields.get("words", ())), text=fields.get("text"))

    def columns(self, examples):
        if all(example.text is None for example in examples):
            return {"words": [list(example.words) for example in examples]}
        return self.columns_of_strings(examples)

    def columns_of_strings(self, examples):
        return {"text": [text_of(example) for example in examples]}

    def truths(self, examples):
        return [list(example.tags) for example in examples]

    def read_out(self, examples: list, values: np.ndarray, thresholds: Any = None) -> list:
        """Answers sentences by the probabilities of the tags of all their words, [words, C]."""
        tags = [self.labels[number] for number in values.argmax(axis=1)]
        answers, begin = [], 0
        for example in examples:
            own = slice(begin, begin + len(example.words))
            sure = tuple(values[own].max(axis=1).tolist())
            answers.append(TagAnswer(example.id, example.words, tuple(tags[own]), sure))
            begin = own.stop
        return answers

    def scores(self, examples, answers):
        truth, given = _truth(examples), _given(answers)
        accuracy = metrics.scores(["accuracy"], self._numbers(truth), self._numbers(given))
        if not has_entities(self.labels):
            return accuracy
        scores = entity_scores(truth, given, self.labels)
        return {f"entity_{name}": value for name, value in scores.items()} | accuracy

    def resampled(self, examples, answers):
        pairs = zip(_truth(examples), _given(answers), strict=True)
        if has_entities(self.labels):
            counts = [entity_counts(*pair, self.labels) for pair in pairs]
        else:
            counts = [(sum(map(operator.eq, *pair)), len(pair[0])) for pair in pairs]
        counts = np.array(counts, np.int64)
        return _ratio_of_counts, counts, counts

    def guesses(self, training_examples, examples):
        return None  # one tag for all words finds nothing

    def shown(self, answer):
        return f"`{' '.join(sorted(set(answer.tags)))}`"

    def error(self, example, answer):
        """As in `Task`; truth and answer are the wrongly tagged words, each as `word/TAG`."""
        rows = zip(example.words, example.tags, answer.tags, answer.probabilities, strict=True)
        wrong = [row for row in rows if row[1] != row[2]]
        if not wrong:
            return None
        truth = " ".join(f"{word}/{tag}" for word, tag, _, _ in wrong)
        given = " ".join(f"{word}/{tag}" for word, _, tag, _ in wrong)
        texts = (" ".join(example.words),)
        return Error(example.id, texts, truth, given, max(sure for *_, sure in wrong))

    def confusion(self, examples, answers):
        truth, given = self._numbers(_truth(examples)), self._numbers(_given(answers))
        return metrics.confusion_matrix(truth, given, self.num_outputs), self.labels

    @functools.cached_property
    def _own_training(self):
        if self.config.train is None:
            raise InputError("`train` must be the training file of tagging. Received: none.")
        return self._read(self.config.train, True, self.config.labels or ())

    def _numbers(self, sentences):
        """Returns the numbers of all tags, int32 [words]."""
        return label_ids([tag for tags in sentences for tag in tags], self.labels)


def _truth(examples):
    return [example.tags for example in examples]


def _given(answers):
    return [answer.tags for answer in answers]


def _ratio_of_counts(_, counts):
    above, below = counts.sum(axis=0)
    return above / below if below else 0.0


def text_of(example: TaggedExample) -> str:
    """Returns the text of a sentence, in which words that were given are marked as such.

    InputError if one of them contains white space, at which a model would split it.
    """
    if example.text is not None:
        return example.text
    for word in example.words:
        if word.split() != [word]:
            raise InputError(
                "Words of a sentence must not contain white space, at which they would be split. "
                f"Received: {word!r}."
            )
    return GIVEN_WORDS + " ".join(example.words)
