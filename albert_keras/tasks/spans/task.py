"""Questions whose answers are spans of a passage: SQuAD 1.1 and 2.0."""

import math
from pathlib import Path

import numpy as np

from albert_keras.models.answers import SpanAnswer
from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.spans.files import read_questions
from albert_keras.tasks.spans.scores import null_threshold, official_scores, question_scores
from albert_keras.tasks.task import Error, Task
from data_pipeline.errors import InputError
from data_pipeline.files import write_json

_THRESHOLD = "null_threshold"
_SHOWN = 150  # characters of a passage, before and after an answer, in a table of errors


class SpanTask(Task):
    """squad1, where every question has an answer."""

    kind, model_name = "spans", "AlbertForQuestionAnswering"
    inputs = ("context", "question")
    card_purpose = "answers a question with a span of a passage"
    hub_pipeline = "question-answering"
    finds_spans = True
    metric = "f1"
    usual_length = 384
    test_splits = ("test",)
    _version = 1  # of SQuAD

    @property
    def model_settings(self):
        found = {name: getattr(self.config, name) for name in ("n_best", "max_answer_length")}
        return found | {"can_be_none": self._version == 2}

    @property
    def preprocessor_settings(self):
        return {name: getattr(self.config, name) for name in ("max_query_length", "doc_stride")}

    def _read_official(self, split):
        name = f"{split}-v{'1.1' if self._version == 1 else '2.0'}.json"
        path = Path(self.data_dir_for(split, f"`{name}`")) / name
        return self._read(path, split not in self.test_splits, needs_positions=split == "train")

    @property
    def _own_training(self):
        return self._read(self.config.train, labelled=True, needs_positions=True)

    def read_file(self, path, labelled):
        return self._read(path, labelled, needs_positions=False)

    def _read(self, path, labelled, needs_positions):
        version = self._version if labelled else None
        skipped = self.skipping(path)
        return read_questions(path, needs_positions, version, skipped)

    def example(self, id, fields):
        return QuestionExample(id, fields["question"], fields["context"])

    def columns(self, examples):
        names = ("context", "question")
        return {name: [getattr(example, name) for example in examples] for name in names}

    def truths(self, examples):
        return [_only_answer(example) for example in examples]

    def scores(self, examples, answers):
        """Returns scores in percent as the official script of the version prints them, F1 first."""
        scores = official_scores(examples, _texts(answers), self._version)
        return {"f1": scores.pop("f1"), **scores}

    def _question_f1(self, examples, answers):
        _, word_f1 = question_scores(examples, _texts(answers), self._version)
        return np.array([100.0 * word_f1[example.id] for example in examples])

    def resampled(self, examples, answers):
        values = self._question_f1(examples, answers)
        return lambda _, sample: sample.mean(), values, values

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
                texts = (_around(example.context, at or 0), example.question)
                truth, probability = " | ".join(golds), answer.probability
                error = Error(example.id, texts, truth, answer.text, probability)
                errors.append((score > 0, -answer.probability, error))
        return [error for *_, error in sorted(errors, key=lambda one: one[:2])]

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


class SpanOrNoneTask(SpanTask):
    """squad2, where some questions have no answer."""

    kind = "spans_or_none"
    card_purpose = f"{SpanTask.card_purpose}, or says that there is none"
    _version = 2

    first_thresholds = {_THRESHOLD: math.inf}

    def fit_thresholds(self, examples, answers):
        """Finds the score for "no answer" from which a question is left unanswered."""
        scores = {answer.id: answer.null_score for answer in answers}
        threshold = null_threshold(examples, _texts(answers), scores)
        return [answer.at_threshold(threshold) for answer in answers], {_THRESHOLD: threshold}

    def guesses(self, training_examples, examples):
        """Answers no question, the best known guess."""
        proportion = float(np.mean([not example.answers for example in training_examples]))
        return [
            SpanAnswer(example.id, "", proportion, None, None, None, []) for example in examples
        ]


def _only_answer(example):
    """Returns the answer to learn from, a dict as in SQuAD; None if there is none."""
    if example.is_impossible:
        return None
    if len(example.answers) != 1:
        raise InputError(
            f"For training, question {example.id!r} must have exactly one answer. "
            f"Received: {len(example.answers)}."
        )
    (answer,) = example.answers
    return {"text": answer.text, "answer_start": answer.start}


def _texts(answers):
    return {answer.id: answer.text for answer in answers}


def _around(context, at):
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return "…" * (begin > 0) + context[begin:end] + "…" * (end < len(context))
