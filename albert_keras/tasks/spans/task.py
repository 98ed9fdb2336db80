"""Questions whose answers are spans of a passage: SQuAD 1.1 and 2.0."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.models.labels import answer_edges
from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.features import check_numbers, with_dropped_tokens
from albert_keras.tasks.metrics import confusion_matrix
from albert_keras.tasks.spans.files import read_questions
from albert_keras.tasks.spans.scores import null_threshold, official_scores, question_scores
from albert_keras.tasks.spans.windows import span_features
from albert_keras.tasks.task import Error, Task
from data_pipeline.errors import InputError
from data_pipeline.files import write_json

_THRESHOLD = "null_threshold"
_NO_WINDOW = 1e6  # the null score of a question without windows
#: Text and scores where no span is possible, by version.
_NOTHING = {1: {"empty": (0.0, 0.0)}, 2: {"": (-1e6, -1e6)}}
_SHOWN = 150  # characters of a passage, before and after an answer, in a table of errors


class SpanAnswer(NamedTuple):
    """An answer to a question about a passage."""

    id: str
    text: str  # as in the passage; "" for no answer; in squad1 `empty` if no span was possible
    probability: float  # of a text among the texts of `nbest`; of no answer, from `null_score`
    start: int | None  # the first character of the text in the passage; None if no answer
    end: int | None  # one more than the last
    null_score: float | None  # the logit of "no answer"; None in squad1
    nbest: list[dict]  # the best texts, as in `DecodedAnswer`
    dropped_tokens: int = 0  # tokens of the question that the model did not read


class DecodedAnswer(NamedTuple):
    """What a model says about a question. It never chooses "no answer", see `null_threshold`."""

    #: "text", "probability", "start_log_prob" and "end_log_prob" of the best texts, best first.
    nbest: list[dict]
    #: The first character of the best text in the raw passage, and one more than the last.
    location: tuple[int, int] | None
    null_score: float | None = None  # for "no answer"; of squad2 only


class SpanTask(Task):
    """squad1, where every question has an answer."""

    kind, model_name = "spans", "AlbertForSpans"
    inputs = ("context", "question")
    targets = dict.fromkeys(("start_positions", "end_positions", "is_impossible"), "int32")
    card_purpose = "answers a question with a span of a passage"
    hub_pipeline = "question-answering"
    per_position = uses_windows = finds_spans = True
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

    def example(self, number, fields):
        """Returns an example of "question" and "context"; see `Task.example`."""
        self.check_fields(fields)
        return QuestionExample(str(number), fields["question"], fields["context"])

    def with_truth(self, example, truth):
        context = example.context
        given = truth if isinstance(truth, list) else [truth]
        edges = [found for one in given if (found := answer_edges(one, context)) is not None]
        answers = tuple(Answer(context[start:end], start) for start, end in edges)
        is_impossible = None if self._version == 1 else not answers
        if self._version == 1 and not answers:
            raise InputError("Every question must have an answer. Received: none.")
        return example._replace(answers=answers, is_impossible=is_impossible)

    def features(self, examples, tokenizer, training=False):
        lengths = self.max_seq_length, self.config.doc_stride, self.config.max_query_length
        return span_features(examples, tokenizer, *lengths, training)

    def answers(self, examples, features, outputs, tuned=None):
        """Reads out SpanAnswers; see `Task.answers`.

        Without a tuned threshold squad2 uses 0: a question is left unanswered if "no answer" is
        at least as probable as an answer.
        """
        decoded = self.decode(examples, features, outputs)
        return with_dropped_tokens(self.decoded_answers(examples, decoded, tuned), features)

    def decoded_answers(self, examples, decoded, tuned=None):
        """Returns SpanAnswers of DecodedAnswers; see `answers` for the threshold."""
        threshold, answers = (tuned or {}).get(_THRESHOLD, 0.0), []
        for example, (nbest, location, null_score) in zip(examples, decoded, strict=True):
            text, probability = nbest[0]["text"], nbest[0]["probability"]
            if null_score is not None:  # a question at the threshold is not answered
                text = text if null_score < threshold else ""
                probability = probability if text else float(scipy.special.expit(null_score))
            start, end = (text and location) or (None, None)
            answers.append(SpanAnswer(example.id, text, probability, start, end, null_score, nbest))
        return answers

    def decode(self, examples, features, outputs) -> list[DecodedAnswer]:
        """Finds the best texts for questions, and scores for "no answer" if the model gives them.

        Where no span is possible, the text is `empty`, or with null scores empty. The null score of
        a question is the lowest of its windows'; 1e6 if it has none. InputError if an output
        contains NaN or an infinite number.

        Source:
            `accumulate_predictions_v1`, `write_predictions_v1` and the same for v2 in
            google-research/albert, `squad_utils.py`.
        """
        check_numbers(outputs)
        longest = self.config.max_answer_length
        rows = [[] for _ in examples]
        for row, index in enumerate(features.example_indices.tolist()):
            rows[index].append(row)
        decoded = []
        for example, own in zip(examples, rows, strict=True):
            spans, null_score = [], None
            if self._version == 2:
                null_score = min(outputs["null_logits"][own].tolist(), default=_NO_WINDOW)
            for row in own:
                spans += _spans(features, row, *self._candidates(outputs, row), longest)
            spans.sort(key=lambda span: span[3] + span[4], reverse=True)  # stable
            located = (
                (features.characters_at(row, start, end, example.context), *scores)
                for row, start, end, *scores in spans
            )
            decoded.append(DecodedAnswer(*self.best_texts(example.context, located), null_score))
        return decoded

    def _candidates(self, outputs, row):
        """Returns start, end and their scores of the spans of a window, arrays of equal length."""
        start_logits, end_logits = outputs["start_logits"][row], outputs["end_logits"][row]
        starts, ends = (_best(one, self.config.n_best) for one in (start_logits, end_logits))
        return (
            np.repeat(starts, len(ends)),
            np.tile(ends, len(starts)),
            np.repeat(start_logits[starts], len(ends)),
            np.tile(end_logits[ends], len(starts)),
        )

    def best_texts(self, context, spans):
        """Returns the best different texts of spans, see `DecodedAnswer`, and where the best is.

        Args:
            spans: Iterable of characters (a pair), start score and end score, the best first.
        """
        texts, location = {}, None
        for characters, start_score, end_score in spans:
            if len(texts) >= self.config.n_best:
                break
            location = location or characters
            texts.setdefault(context[slice(*characters)], (start_score, end_score))
        texts = texts or _NOTHING[self._version]
        scores = [start + end for start, end in texts.values()]
        probabilities = scipy.special.softmax(scores).tolist()
        nbest = [
            {"text": text, "probability": probability, "start_log_prob": start, "end_log_prob": end}
            for (text, (start, end)), probability in zip(texts.items(), probabilities, strict=True)
        ]
        return nbest, location

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

    def guesses(self, training_examples, examples):
        return None

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
    per_position = False
    _version = 2

    def tuned_answers(self, examples, features, outputs):
        """Finds the score for "no answer" from which a question is left unanswered."""
        decoded = self.decode(examples, features, outputs)
        pairs = list(zip(examples, decoded, strict=True))
        texts = {example.id: one.nbest[0]["text"] for example, one in pairs}
        scores = {example.id: one.null_score for example, one in pairs}
        tuned = {_THRESHOLD: null_threshold(examples, texts, scores)}
        answers = self.decoded_answers(examples, decoded, tuned)
        return with_dropped_tokens(answers, features), tuned

    def _candidates(self, outputs, row):
        """As in `SpanTask`; the model itself gives the best ends after each of the best starts."""
        starts, ends = outputs["start_indices"][row], outputs["end_indices"][row]
        first, second = outputs["start_log_probs"][row], outputs["end_log_probs"][row]
        per_start = len(ends) // len(starts)
        return np.repeat(starts, per_start), ends, np.repeat(first, per_start), second

    def guesses(self, training_examples, examples):
        """Answers no question, the best known guess."""
        proportion = float(np.mean([not example.answers for example in training_examples]))
        return [
            SpanAnswer(example.id, "", proportion, None, None, None, []) for example in examples
        ]

    def confusion(self, examples, answers):
        """Counts what has an answer and what received one; see `Task.confusion`."""
        truth = [int(not example.answers) for example in examples]
        given = [int(not answer.text) for answer in answers]
        return confusion_matrix(truth, given, 2), ("answerable", "unanswerable")


def _spans(features, row, starts, ends, start_scores, end_scores, max_answer_length):
    """Returns row, first and last position, and both scores of each span that may be an answer."""
    stop = features.passage_starts[row] + features.passage_lengths[row]
    keep = features.shows_most(row, starts) & (ends < stop) & (ends >= starts)
    keep &= ends - starts < max_answer_length
    kept = (array[keep].tolist() for array in (starts, ends, start_scores, end_scores))
    return [(row, *span) for span in zip(*kept, strict=True)]


def _best(scores, count):
    """Returns the positions of the highest scores, the first of equals first."""
    return np.argsort(-np.asarray(scores, np.float64), kind="stable")[:count]


def _texts(answers):
    return {answer.id: answer.text for answer in answers}


def _around(context, at):
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return "…" * (begin > 0) + context[begin:end] + "…" * (end < len(context))
