"""Reads answers out of a model's outputs for windows: the n best texts per question."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.predictions import check_numbers
from albert_keras.tasks.spans.windows import SpanFeatures
from albert_keras.tasks.task import features_of_models
from data_pipeline.files import write_json

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
    #: The first character of the best text in the raw passage, and one more than the last; None
    #: where not known. Not saved.
    locations: dict[str, tuple[int, int] | None] | None = None

    def save(self, folder: str | Path) -> list[Path]:
        """Writes `predictions.json`, `nbest_predictions.json` and, in version 2, `null_odds.json`.

        The folder must exist; older files of these names are replaced.
        """
        contents = {"predictions.json": self.predictions, "nbest_predictions.json": self.nbest}
        if self.null_scores is not None:
            contents["null_odds.json"] = self.null_scores
        for name, content in contents.items():
            write_json(Path(folder) / name, content, indent=4)
        return [Path(folder) / name for name in contents]


def decode_v1(
    examples: Sequence[QuestionExample],
    features: SpanFeatures | tuple[SpanFeatures, ...],
    results: Sequence[dict[str, np.ndarray]],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> DecodedAnswers:
    """Returns the best texts for questions that all have an answer.

    Args:
        features: Features of these examples, not for training. A tuple with the features of each
            model, if they differ: spans of characters are then compared, and the logits of a model
            are normalized over all windows of a question, as models of different kinds have
            different scales.
        results: "start_logits" and "end_logits", float [W, S]. One dict per model; a span's scores
            are averaged over the models that have it among their best.
        n_best: How many starts and how many ends are tried per window, and how many texts are
            returned.
        max_answer_length: Largest number of tokens of an answer.

    Returns:
        Where no span is possible, the answer is the literal text `empty`.

    Raises:
        InputError: If an output contains NaN or an infinite number.

    Source:
        `accumulate_predictions_v1` and `write_predictions_v1` in google-research/albert,
        `squad_utils.py`.
    """

    def candidates(result, row):
        start_logits, end_logits = result["start_logits"][row], result["end_logits"][row]
        starts, ends = _best(start_logits, n_best), _best(end_logits, n_best)
        return (
            np.repeat(starts, len(ends)),
            np.tile(ends, len(starts)),
            np.repeat(start_logits[starts], len(ends)),
            np.tile(end_logits[ends], len(starts)),
        )

    check_numbers(results)
    if isinstance(features, tuple):
        pairs = zip(features, results, strict=True)
        results = [_normalized(own.example_indices, result) for own, result in pairs]
    return _decode(examples, features, results, candidates, n_best, max_answer_length, NOTHING_V1)


def decode_v2(
    examples: Sequence[QuestionExample],
    features: SpanFeatures | tuple[SpanFeatures, ...],
    results: Sequence[dict[str, np.ndarray]],
    n_best: int = 20,
    max_answer_length: int = 30,
) -> DecodedAnswers:
    """Returns the best texts for questions that may have no answer, and scores for "no answer".

    Args as of `decode_v1`, with the outputs of `SPANS_OR_NONE`; null scores are averaged over all
    models.

    Returns:
        Where no span is possible, the text is empty. The null score of a question is the lowest of
        its windows'; 1e6 if it has none.

    Raises:
        InputError: If an output contains NaN or an infinite number.

    Source:
        `accumulate_predictions_v2` and `write_predictions_v2` in google-research/albert,
        `squad_utils.py`.
    """

    def candidates(result, row):
        starts, ends = result["start_indices"][row], result["end_indices"][row]
        per_start = len(ends) // len(starts)
        return (
            np.repeat(starts, per_start),
            ends,
            np.repeat(result["start_log_probs"][row], per_start),
            result["end_log_probs"][row],
        )

    check_numbers(results)
    decoded = _decode(
        examples, features, results, candidates, n_best, max_answer_length, NOTHING_V2
    )
    lowest = np.full((len(results), len(examples)), _NO_WINDOW)
    of_models = features_of_models(features, results)
    for of_questions, own, result in zip(lowest, of_models, results, strict=True):
        np.minimum.at(of_questions, own.example_indices, result["null_logits"])
    averaged = lowest.mean(axis=0).tolist()
    null_scores = {example.id: score for example, score in zip(examples, averaged, strict=True)}
    return decoded._replace(null_scores=null_scores)


def _normalized(example_indices, result):
    """Returns logits as log-probabilities over all positions of all windows of a question."""
    logits = {name: np.asarray(result[name], np.float64) for name in ("start_logits", "end_logits")}
    for name, values in logits.items():
        totals = np.full(example_indices.max(initial=0) + 1, -np.inf)
        of_windows = scipy.special.logsumexp(values, axis=1)
        np.logaddexp.at(totals, example_indices, of_windows)
        logits[name] = values - totals[example_indices, None]
    return logits


def _decode(examples, features, results, candidates, n_best, max_answer_length, nothing):
    # Models that read the same rows are compared by position, others by character.
    if isinstance(features, tuple):
        groups = [(own, [result]) for own, result in zip(features, results, strict=True)]
    else:
        groups = [(features, results)]
    rows_of = [_rows_of_examples(own, len(examples)) for own, _ in groups]
    nbest, locations = {}, {}
    for number, example in enumerate(examples):
        found = []
        for (own, results), rows in zip(groups, rows_of, strict=True):
            spans = []
            for row in rows[number]:
                given = [candidates(result, row) for result in results]
                spans += _spans(own, row, given, max_answer_length)
            spans.sort(key=lambda span: span[3] + span[4], reverse=True)  # stable
            found.append(_located(own, spans, example.context))
        located = found[0] if len(found) == 1 else _averaged(found)
        nbest[example.id], locations[example.id] = best_texts(
            example.context, located, n_best, nothing
        )
    predictions = {id: texts[0]["text"] for id, texts in nbest.items()}
    return DecodedAnswers(predictions, nbest, locations=locations)


def _rows_of_examples(features, count):
    rows = [[] for _ in range(count)]
    for row, index in enumerate(features.example_indices.tolist()):
        rows[index].append(row)
    return rows


def _located(features, spans, context):
    """Yields the characters of each span, as a pair, and its two scores."""
    for row, start, end, *scores in spans:
        yield features.characters_at(row, start, end, context), *scores


def _averaged(found):
    """Joins the spans of several models, see `_located`, the best first: list of the same.

    The scores of a span are averaged over the models that have it, as in `_spans`.
    """
    scores = {}
    for located in found:
        best = {}
        for characters, *pair in located:
            best.setdefault(characters, pair)
        for characters, pair in best.items():
            scores.setdefault(characters, []).append(pair)
    spans = [(characters, *np.mean(pairs, axis=0).tolist()) for characters, pairs in scores.items()]
    return sorted(spans, key=lambda span: span[1] + span[2], reverse=True)


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


def _spans(features, row, candidates, max_answer_length):
    """Returns row, first and last position, and both scores of each span that may be an answer."""
    scores = {}
    begin = features.passage_starts[row]
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
    """Returns the positions of the highest scores, the first of equals first."""
    return np.argsort(-np.asarray(scores, np.float64), kind="stable")[:count]
