"""Questions whose answers are spans of a passage: SQuAD 1.1 and 2.0."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.kinds import SPANS, SPANS_OR_NONE
from albert_keras.tasks.metrics import bootstrap_interval, confusion_matrix
from albert_keras.tasks.spans.decoding import decode
from albert_keras.tasks.spans.files import Rule, read_questions
from albert_keras.tasks.spans.scores import (
    apply_null_threshold,
    null_threshold,
    official_scores,
    question_scores,
)
from albert_keras.tasks.spans.windows import span_features
from albert_keras.tasks.task import Error, Task, one_line, with_dropped_tokens
from data_pipeline.errors import InputError
from data_pipeline.files import write_json

_THRESHOLD = "null_threshold"
#: What the answers to labelled questions must be, by version.
_RULES = {
    1: Rule(
        "must have an answer; squad2 is for questions without answers",
        lambda one: bool(one.answers) and not one.is_impossible,
    ),
    2: Rule(
        "must have an answer or be impossible",
        lambda one: bool(one.is_impossible or one.answers),
    ),
}
_SHOWN = 150  # characters of a passage, before and after an answer, in a table of errors


class SpanAnswer(NamedTuple):
    """An answer to a question about a passage."""

    id: str
    text: str  # as in the passage; "" for no answer; in squad1 `empty` if no span was possible
    probability: float  # of a text among the texts of `nbest`; of no answer, from `null_score`
    start: int | None  # the first character of the text in the passage; None if no answer
    end: int | None  # one more than the last
    null_score: float | None  # the logit of "no answer"; None in squad1
    nbest: list[dict]  # the best texts, as in `DecodedAnswers`
    dropped_tokens: int = 0  # tokens of the question that the model did not read


class SpanTask(Task):
    """squad1, where every question has an answer, or squad2, where some have none."""

    metric = "f1"
    usual_length = 384
    dev_splits = ("dev",)
    test_splits = ("test",)
    labels = ()

    def __init__(self, config):
        super().__init__(config)
        self.kind = SPANS if config.name in SPANS.official_tasks else SPANS_OR_NONE
        self._version = 1 if self.kind is SPANS else 2

    def read(self, split):
        self.check_split(split)
        given = {"train": self.config.train, "dev": self.config.dev}.get(split)
        path = given or self._official(split)
        return self._read(path, split not in self.test_splits, needs_positions=split == "train")

    def _official(self, split):
        name = f"{split}-v{'1.1' if self._version == 1 else '2.0'}.json"
        return Path(self.data_dir_for(split, f"`{name}`")) / name

    def read_file(self, path, labelled):
        return self._read(path, labelled, needs_positions=False)

    def _read(self, path, labelled, needs_positions):
        rule = _RULES[self._version] if labelled else None
        return read_questions(path, needs_positions, rule, self.skipping(path))

    def example(self, number, fields):
        """Returns an example of "question" and "context"; see `Task.example`."""
        self.check_fields(fields)
        return QuestionExample(str(number), fields["question"], fields["context"])

    def with_truth(self, example, truth):
        given = [truth] if isinstance(truth, str | dict) else truth or []
        answers = tuple(_answer_in(example.context, one) for one in given if one != "")
        is_impossible = None if self._version == 1 else not answers
        if self._version == 1 and not answers:
            raise InputError("Every question must have an answer. Received: none.")
        return example._replace(answers=answers, is_impossible=is_impossible)

    def features(self, examples, tokenizer, training=False):
        lengths = self.max_seq_length, self.config.doc_stride, self.config.max_query_length
        return span_features(examples, tokenizer, *lengths, training)

    def tuned_answers(self, examples, features, outputs):
        """Finds the score for "no answer" from which squad2 leaves a question unanswered."""
        decoded, tuned = self._decode(examples, features, outputs), {}
        if self._version == 2:
            threshold = null_threshold(examples, decoded.predictions, decoded.null_scores)
            tuned = {_THRESHOLD: threshold}
        answers = self.decoded_answers(examples, decoded, tuned)
        return with_dropped_tokens(answers, features), tuned

    def answers(self, examples, features, outputs, tuned=None):
        """Reads out SpanAnswers; see `Task.answers`.

        Without a tuned threshold squad2 uses 0: a question is left unanswered if "no answer" is
        at least as probable as an answer.
        """
        decoded = self._decode(examples, features, outputs)
        return with_dropped_tokens(self.decoded_answers(examples, decoded, tuned), features)

    def decoded_answers(self, examples, decoded, tuned=None):
        """Returns SpanAnswers of DecodedAnswers; see `answers` for the threshold."""
        predictions, null_scores = decoded.predictions, decoded.null_scores
        if self._version == 2:
            threshold = (tuned or {}).get(_THRESHOLD, 0.0)
            predictions = apply_null_threshold(predictions, null_scores, threshold)
        answers = []
        for example in examples:
            text, nbest = predictions[example.id], decoded.nbest[example.id]
            start, end = (text and decoded.locations[example.id]) or (None, None)
            null_score = null_scores[example.id] if self._version == 2 else None
            probability = nbest[0]["probability"]
            if self._version == 2 and not text:
                probability = float(scipy.special.expit(null_score))
            answers.append(SpanAnswer(example.id, text, probability, start, end, null_score, nbest))
        return answers

    def _decode(self, examples, features, outputs):
        config = self.config
        return decode(examples, features, outputs, config.n_best, config.max_answer_length)

    def scores(self, examples, answers):
        """Returns scores in percent as the official script of the version prints them, F1 first."""
        scores = official_scores(examples, _texts(answers), self._version)
        return {"f1": scores.pop("f1"), **scores}

    def _question_f1(self, examples, answers):
        _, word_f1 = question_scores(examples, _texts(answers), self._version)
        return np.array([100.0 * word_f1[example.id] for example in examples])

    def interval(self, examples, answers):
        values = self._question_f1(examples, answers)
        return bootstrap_interval(lambda sample, _: sample.mean(), values, values)

    def guesses(self, training_examples, examples):
        """Answers no question of squad2, the best known guess; there is none for squad1."""
        if self._version == 1:
            return None
        proportion = float(np.mean([not example.answers for example in training_examples]))
        return [
            SpanAnswer(example.id, "", proportion, None, None, None, []) for example in examples
        ]

    def shown(self, answer):
        return f"`{answer.text[:60]}`" if answer.text else "no answer"

    def errors(self, examples, answers):
        """Returns the answers below full F1: first those without a right word."""
        errors = []
        word_f1 = self._question_f1(examples, answers)
        for example, answer, score in zip(examples, answers, word_f1, strict=True):
            if score < 100:
                golds = dict.fromkeys(gold.text for gold in example.answers)
                at = example.answers[0].start if example.answers else answer.start
                text = one_line(example.question, _around(example.context, at or 0))
                truth, given = one_line(" | ".join(golds)), one_line(answer.text)
                error = Error(example.id, text, truth, given, answer.probability)
                errors.append((score > 0, -answer.probability, error))
        return [error for *_, error in sorted(errors, key=lambda one: one[:2])]

    def confusion(self, examples, answers):
        """Counts for squad2 what has an answer and what received one; see `Task.confusion`."""
        if self._version == 1:
            return None
        truth = [int(not example.answers) for example in examples]
        given = [int(not answer.text) for answer in answers]
        return confusion_matrix(truth, given, 2), ("answerable", "unanswerable")

    def write(self, folder, split, examples, answers):
        """Writes the official files, the same for every split, and the scores of "no answer"."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        contents = {
            "predictions.json": _texts(answers),
            "nbest_predictions.json": {answer.id: answer.nbest for answer in answers},
        }
        if self._version == 2:
            contents["null_odds.json"] = {answer.id: answer.null_score for answer in answers}
        for name, content in contents.items():
            write_json(folder / name, content, indent=4)
        return [folder / name for name in contents]


def _answer_in(context, given):
    """Returns the Answer that a user gives as a text, with or without its first character."""
    text = given["text"] if isinstance(given, dict) else given
    start = given.get("answer_start") if isinstance(given, dict) else context.find(text)
    start = start[0] if isinstance(start, list) else start
    text = text[0] if isinstance(text, list) else text
    if not text or start is None or context[max(start, 0) :][: len(text)] != text:
        raise InputError(f"An answer must be in its passage. Received: {given!r}.")
    return Answer(text, start)


def _texts(answers):
    return {answer.id: answer.text for answer in answers}


def _around(context, at):
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return "…" * (begin > 0) + context[begin:end] + "…" * (end < len(context))
