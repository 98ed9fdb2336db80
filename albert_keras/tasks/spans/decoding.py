"""Reads answers out of a model's outputs for windows: the n best texts per question."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.spans.windows import SpanFeatures
from albert_keras.tasks.task import check_numbers

_NO_WINDOW = 1e6  # the null score of a question without windows
#: Text and scores where no span is possible: of version 1, and of version 2.
NOTHING_V1, NOTHING_V2 = ("empty", 0.0, 0.0), ("", -1e6, -1e6)


class DecodedAnswers(NamedTuple):
    """The answers to questions, by id."""

    #: The best text. Never "no answer" by choice: see `apply_null_threshold`.
    predictions: dict[str, str]
    #: "text", "probability", "start_log_prob" and "end_log_prob" of the best texts, best first.
    nbest: dict[str, list[dict]]
    null_scores: dict[str, float] | None = None  # for "no answer"; version 2 only
    #: The first character of the best text in the raw passage, and one more than the last.
    locations: dict[str, tuple[int, int] | None] | None = None


def decode(
    examples: Sequence[QuestionExample],
    features: SpanFeatures,
    outputs: dict[str, np.ndarray],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> DecodedAnswers:
    """Returns the best texts for questions, and scores for "no answer" if models give them.

    Args:
        features: Features of these examples, not for training.
        outputs: Of `SPANS`, where all questions have an answer, or of `SPANS_OR_NONE`.
        n_best: How many texts are returned; of `SPANS` also how many starts and how many ends are
            tried per window.
        max_answer_length: Largest number of tokens of an answer.

    Returns:
        Where no span is possible, the text is `empty`, or with null scores empty. The null score of
        a question is the lowest of its windows'; 1e6 if it has none.

    Raises:
        InputError: If an output contains NaN or an infinite number.

    Source:
        `accumulate_predictions_v1`, `write_predictions_v1` and the same for v2 in
        google-research/albert, `squad_utils.py`.
    """
    check_numbers(outputs)
    may_be_none = "null_logits" in outputs
    rows = [[] for _ in examples]
    for row, index in enumerate(features.example_indices.tolist()):
        rows[index].append(row)
    nbest, locations = {}, {}
    for number, example in enumerate(examples):
        spans = []
        for row in rows[number]:
            found = (
                _candidates_or_none(outputs, row)
                if may_be_none
                else _candidates(outputs, row, n_best)
            )
            spans += _spans(features, row, *found, max_answer_length)
        spans.sort(key=lambda span: span[3] + span[4], reverse=True)  # stable
        located = (
            (features.characters_at(row, start, end, example.context), *scores)
            for row, start, end, *scores in spans
        )
        nbest[example.id], locations[example.id] = best_texts(
            example.context, located, n_best, NOTHING_V2 if may_be_none else NOTHING_V1
        )
    predictions = {id: texts[0]["text"] for id, texts in nbest.items()}
    null_scores = _null_scores(examples, features, outputs) if may_be_none else None
    return DecodedAnswers(predictions, nbest, null_scores, locations)


def _candidates(outputs, row, n_best):
    """Returns start, end and their scores of the spans of a window, arrays of equal length."""
    start_logits, end_logits = outputs["start_logits"][row], outputs["end_logits"][row]
    starts, ends = _best(start_logits, n_best), _best(end_logits, n_best)
    return (
        np.repeat(starts, len(ends)),
        np.tile(ends, len(starts)),
        np.repeat(start_logits[starts], len(ends)),
        np.tile(end_logits[ends], len(starts)),
    )


def _candidates_or_none(outputs, row):
    """Returns the same of a model that gives the best ends after each of the best starts."""
    starts, ends = outputs["start_indices"][row], outputs["end_indices"][row]
    per_start = len(ends) // len(starts)
    return (
        np.repeat(starts, per_start),
        ends,
        np.repeat(outputs["start_log_probs"][row], per_start),
        outputs["end_log_probs"][row],
    )


def _null_scores(examples, features, outputs):
    lowest = np.full(len(examples), _NO_WINDOW)
    np.minimum.at(lowest, features.example_indices, outputs["null_logits"])
    return {example.id: score for example, score in zip(examples, lowest.tolist(), strict=True)}


def best_texts(context, spans, n_best, nothing):
    """Returns the best different texts of spans, see `DecodedAnswers.nbest`, and where the best is.

    Args:
        spans: Iterable of characters (a pair), start score and end score, the best first.
        nothing: Text and two scores that take the place of a best text if there is no span.
    """
    texts, location = {}, None
    for characters, start_score, end_score in spans:
        if len(texts) >= n_best:
            break
        location = location or characters
        texts.setdefault(context[slice(*characters)], (start_score, end_score))
    if not texts:
        texts[nothing[0]] = nothing[1:]
    probabilities = scipy.special.softmax([start + end for start, end in texts.values()]).tolist()
    nbest = [
        {"text": text, "probability": probability, "start_log_prob": start, "end_log_prob": end}
        for (text, (start, end)), probability in zip(texts.items(), probabilities, strict=True)
    ]
    return nbest, location


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
