"""Reads answers out of what a model says about windows: the n best texts per question."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.squad.predictions import DecodedAnswers
from albert_keras.tasks.squad.window_features import SquadFeatures

_NO_WINDOW = 1e6  # the null score of a question without windows
_NOTHING_LEFT = -1e6  # the scores of the empty text where version 2 finds no answer


class SpanLogits(NamedTuple):
    """What a model of version 1 says: `starts` and `ends`, float [W, S], raw logits."""

    starts: np.ndarray
    ends: np.ndarray


class SpanCandidates(NamedTuple):
    """What a model of version 2 says: the N best starts and the M best ends of each.

    Attributes:
        start_log_probs: float [W, N].
        start_indices: int [W, N]. Places of the window.
        end_log_probs: float [W, N * M]. The ends of the first start, then those of the second.
        end_indices: int [W, N * M].
        null_logits: float [W]. Positive: the window holds no answer.
    """

    start_log_probs: np.ndarray
    start_indices: np.ndarray
    end_log_probs: np.ndarray
    end_indices: np.ndarray
    null_logits: np.ndarray


def decode_v1(
    examples: Sequence[QuestionExample],
    features: SquadFeatures,
    results: Sequence[SpanLogits],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> DecodedAnswers:
    """Returns the best texts for questions that all have an answer.

    Args:
        examples: sequence of QuestionExample. Those the features were made from.
        features: SquadFeatures.
        results: sequence of SpanLogits. One per model; a span's scores are averaged over the
            models that have it among their best.
        n_best: int. How many starts and how many ends are tried per window, and how many texts
            are kept.
        max_answer_length: int. The longest answer, in pieces.

    Returns:
        DecodedAnswers. Where no span is left, the answer is the literal text `empty`.

    Raises:
        ValueError: If an array has another shape, or holds NaN.

    Source:
        `accumulate_predictions_v1` and `write_predictions_v1` in google-research/albert,
        `squad_utils.py`.
    """
    windows, length = features.input_ids.shape
    _check_examples(examples, features, results)
    for result in results:
        _check_arrays(result, (windows, length), (windows, length))

    def candidates(row):
        for result in results:
            starts = _best(result.starts[row], n_best)
            ends = _best(result.ends[row], n_best)
            yield (
                np.repeat(starts, len(ends)),
                np.tile(ends, len(starts)),
                np.repeat(result.starts[row][starts], len(ends)),
                np.tile(result.ends[row][ends], len(starts)),
            )

    nbest, places = _nbest(
        examples, features, candidates, n_best, max_answer_length, ("empty", 0.0, 0.0)
    )
    predictions = {id: texts[0]["text"] for id, texts in nbest.items()}
    return DecodedAnswers(predictions, nbest, places=places)


def decode_v2(
    examples: Sequence[QuestionExample],
    features: SquadFeatures,
    results: Sequence[SpanCandidates],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> DecodedAnswers:
    """Returns the best texts for questions that may have no answer, and scores for "no answer".

    Args:
        examples: sequence of QuestionExample. Those the features were made from.
        features: SquadFeatures.
        results: sequence of SpanCandidates. One per model; spans as in `decode_v1`, null scores
            averaged over all.
        n_best: int. How many texts are kept.
        max_answer_length: int. The longest answer, in pieces.

    Returns:
        DecodedAnswers. Where no span is left, the text is empty. The null score of a question is
        the least of its windows'; 1e6 without any.

    Raises:
        ValueError: If an array has another shape, or holds NaN.

    Source:
        `accumulate_predictions_v2` and `write_predictions_v2` in google-research/albert,
        `squad_utils.py`.
    """
    windows = len(features)
    _check_examples(examples, features, results)
    for result in results:
        starts, ends = np.shape(result.start_log_probs)[-1], np.shape(result.end_log_probs)[-1]
        shapes = (windows, starts), (windows, starts), (windows, ends), (windows, ends), (windows,)
        _check_arrays(result, *shapes)
        if not starts or ends % starts:
            raise ValueError(
                "There should be equally many ends for each start. "
                f"Received: {ends} ends for {starts} starts."
            )

    def candidates(row):
        for result in results:
            per_start = result.end_indices.shape[1] // result.start_indices.shape[1]
            yield (
                np.repeat(result.start_indices[row], per_start),
                result.end_indices[row],
                np.repeat(result.start_log_probs[row], per_start),
                result.end_log_probs[row],
            )

    nothing = "", _NOTHING_LEFT, _NOTHING_LEFT
    nbest, places = _nbest(examples, features, candidates, n_best, max_answer_length, nothing)
    lowest = np.full((len(results), len(examples)), _NO_WINDOW)
    for of_questions, result in zip(lowest, results, strict=True):
        np.minimum.at(of_questions, features.example_indices, result.null_logits)
    averaged = lowest.mean(axis=0).tolist()
    null_scores = {example.id: score for example, score in zip(examples, averaged, strict=True)}
    predictions = {id: texts[0]["text"] for id, texts in nbest.items()}
    return DecodedAnswers(predictions, nbest, null_scores, places)


def _nbest(examples, features, candidates, n_best, max_answer_length, nothing):
    rows_of = [[] for _ in examples]
    for row, index in enumerate(features.example_indices.tolist()):
        rows_of[index].append(row)
    nbest, places = {}, {}
    for example, rows in zip(examples, rows_of, strict=True):
        nbest[example.id], places[example.id] = _best_texts(
            example, rows, features, candidates, n_best, max_answer_length, nothing
        )
    return nbest, places


def _best_texts(example, rows, features, candidates, n_best, max_answer_length, nothing):
    spans = []
    for row in rows:
        spans += _spans(features, row, candidates(row), max_answer_length)
    spans.sort(key=lambda span: span[3] + span[4], reverse=True)  # keeps the order of equals
    texts, place = {}, None
    for row, start, end, start_score, end_score in spans:
        if len(texts) >= n_best:
            break
        characters = features.characters_at(row, start, end, example.context)
        place = place or characters
        texts.setdefault(example.context[slice(*characters)], (start_score, end_score))
    if not texts:
        texts[nothing[0]] = nothing[1:]
    probabilities = _softmax([start + end for start, end in texts.values()])
    nbest = [
        {"text": text, "probability": probability, "start_log_prob": start, "end_log_prob": end}
        for (text, (start, end)), probability in zip(texts.items(), probabilities, strict=True)
    ]
    return nbest, place


def _spans(features, row, candidates, max_answer_length):
    """Returns row, first and last place, and both scores of each span that may be an answer."""
    scores = {}
    begin = features.query_lengths[row] + 2
    stop = begin + features.passage_lengths[row]
    for starts, ends, start_scores, end_scores in candidates:
        keep = (starts >= begin) & (starts < stop) & (ends < stop) & (ends >= starts)
        keep &= ends - starts < max_answer_length
        keep &= features.is_max_context[row][np.where(keep, starts, 0)]
        kept = (array[keep].tolist() for array in (starts, ends, start_scores, end_scores))
        for start, end, start_score, end_score in zip(*kept, strict=True):
            scores.setdefault((start, end), []).append((start_score, end_score))
    return [
        (row, start, end, *(sum(one) / len(one) for one in zip(*pairs, strict=True)))
        for (start, end), pairs in scores.items()
    ]


def _best(scores, count):
    """Returns the places of the highest scores, the first of equals first."""
    return np.argsort(-np.asarray(scores, np.float64), kind="stable")[:count]


def _softmax(scores):
    weights = np.exp(np.array(scores) - max(scores))
    return (weights / weights.sum()).tolist()


def _check_examples(examples, features, results):
    if features.is_max_context is None:
        raise ValueError("Features made with `training=True` are not for reading answers out.")
    if len(examples) != len(features.passages):
        raise ValueError(
            f"The examples should be the {len(features.passages)} that the features were made of. "
            f"Received: {len(examples)}."
        )
    if not results:
        raise ValueError("`results` should hold those of one model at least. Received: none.")


def _check_arrays(result, *shapes):
    for name, array, shape in zip(result._fields, result, shapes, strict=True):
        if np.shape(array) != shape:
            raise ValueError(f"`{name}` should be {shape}. Received: {np.shape(array)}.")
        if np.isnan(array).any():
            raise ValueError(f"`{name}` should be numbers. Received: NaN among them.")
