"""Scores of answers, to the last digit as the official SQuAD scripts compute them, and thresholds.

The scripts of the two versions differ where both texts are empty, and where a prediction is
missing. A question of version 2.0 stays unanswered if its score for
"no answer" reaches a threshold.
"""

import collections
import logging
import re
import string
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from data_pipeline.errors import InputError

#: Error where no question has a prediction.
NO_PREDICTION = (
    "The predictions must be for these questions. Received: predictions for none of them."
)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

logger = logging.getLogger(__name__)


def normalize_answer(text: str) -> str:
    """Returns the form in which answers are compared: lower case, single spaces, and without ASCII
    punctuation and the words a, an and the.

    Source:
        `normalize_answer` in `evaluate-v1.1.py` and `evaluate-v2.0.py`.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def f1(gold: str, predicted: str, version: int = 2) -> float:
    """Returns the harmonic mean of precision and recall over normalised words, with repetitions.

    For two texts without words, version 1 returns 0, version 2 returns 1.
    """
    gold_words, predicted_words = (normalize_answer(text).split() for text in (gold, predicted))
    if version == 2 and not (gold_words and predicted_words):
        return int(gold_words == predicted_words)
    shared = collections.Counter(gold_words) & collections.Counter(predicted_words)
    same = sum(shared.values())
    if same == 0:
        return 0
    precision = 1.0 * same / len(predicted_words)
    recall = 1.0 * same / len(gold_words)
    return (2 * precision * recall) / (precision + recall)  # in this order, to the last digit


def question_scores(
    examples: Iterable[QuestionExample], predictions: Mapping[str, str], version: int = 2
) -> tuple[dict[str, int], dict[str, float]]:
    """Returns exact match and F1 of each question, 0 to 1, by the rules of version 1 or 2.

    Missing predictions (id -> text) are ignored. A question without answers is an InputError in
    version 1, and has the gold answer "" in version 2.

    Source:
        `evaluate` in `evaluate-v1.1.py`, `get_raw_scores` in `evaluate-v2.0.py`.
    """
    exact, word_f1 = {}, {}
    for example in examples:
        golds = [answer.text for answer in example.answers]
        if version == 1 and not golds:
            raise InputError(f"Question {example.id!r} must have an answer to be scored.")
        if version == 2:
            golds = [gold for gold in golds if normalize_answer(gold)] or [""]
        if example.id in predictions:
            predicted = predictions[example.id]
            exact[example.id] = int(normalize_answer(predicted) in map(normalize_answer, golds))
            word_f1[example.id] = max(f1(gold, predicted, version) for gold in golds)
    return exact, word_f1


def official_scores(
    examples: Sequence[QuestionExample], predictions: Mapping[str, str], version: int
) -> dict[str, float]:
    """Returns what `evaluate-v1.1.py` or `evaluate-v2.0.py` prints.

    Args:
        predictions: Id -> text, "" for no answer. Missing ones are logged; they count as wrong in
            version 1, and are ignored in version 2.
        version: 1 or 2.

    Returns:
        Of version 1 "exact_match" and "f1", in percent. Of version 2 "exact", "f1" in percent and
        "total"; the same with "HasAns_" and "NoAns_" in front for questions with and without
        answers, if there are any.

    Raises:
        InputError: If there is no example; in version 1 if one has no answers; in version 2 if
            there is no prediction for any.
    """
    if not examples:
        raise InputError("There must be at least one question to score. Received: none.")
    exact, word_f1 = question_scores(examples, predictions, version)
    if version == 2 and not exact:
        raise InputError(NO_PREDICTION)
    missing = [example.id for example in examples if example.id not in predictions]
    if missing:
        logger.warning(
            "%d of %d questions have no prediction and are %s; the first is %r.",
            len(missing),
            len(examples),
            "counted as wrong" if version == 1 else "ignored",
            missing[0],
        )
    if version == 1:
        return {
            "exact_match": 100.0 * sum(exact.values()) / len(examples),
            "f1": 100.0 * sum(word_f1.values()) / len(examples),
        }
    scores = _summary(exact, word_f1, list(exact))
    scored = [example for example in examples if example.id in predictions]
    for name, has_answer in (("HasAns", True), ("NoAns", False)):
        ids = [example.id for example in scored if bool(example.answers) == has_answer]
        if ids:
            part = _summary(exact, word_f1, ids)
            scores |= {f"{name}_{key}": value for key, value in part.items()}
    return scores


def best_thresholds(
    examples: Sequence[QuestionExample],
    predictions: Mapping[str, str],
    null_scores: Mapping[str, float],
) -> dict[str, float]:
    """Finds the official best thresholds for exact match and for F1.

    Args:
        predictions: Id -> text, for every question the best text if it had an answer. Missing
            questions are ignored.
        null_scores: Id -> score, higher for "no answer".

    Returns:
        "best_exact" and "best_f1" in percent, "best_exact_thresh" and "best_f1_thresh".

    Raises:
        InputError: If there is no prediction for any example, or no score for a prediction.

    Source:
        `find_best_thresh` in `evaluate-v2.0.py`, the same as `find_best_thresh_v2` in
        google-research/albert, `squad_utils.py`.
    """
    exact, word_f1 = question_scores(examples, predictions)
    if not exact:
        raise InputError(NO_PREDICTION)
    missing = [id for id in exact if id not in null_scores]
    if missing:
        raise InputError(
            'Every predicted question must have a score for "no answer". '
            f"Missing: {len(missing)}, the first is {missing[0]!r}."
        )
    has_answer = {example.id: bool(example.answers) for example in examples if example.id in exact}
    # Equal scores keep the order in which they are given, as in the official script.
    by_score = [id for id in sorted(null_scores, key=null_scores.__getitem__) if id in exact]
    best = {}
    for name, scores in (("exact", exact), ("f1", word_f1)):
        best_sum = current = len(exact) - sum(has_answer.values())
        threshold = 0.0
        for id in by_score:
            if has_answer[id]:
                current += scores[id]
            elif predictions[id]:
                current -= 1
            if current > best_sum:
                best_sum, threshold = current, null_scores[id]
        best[f"best_{name}"] = 100.0 * best_sum / len(scores)
        best[f"best_{name}_thresh"] = threshold
    return best


def null_threshold(examples, predictions, null_scores) -> float:
    """Finds the threshold with the best F1.

    It is just above the threshold that the official search finds: that search counts the question
    at the threshold as answered, whereas models answer strictly below it. And where
    answering nothing is best, the official search returns 0, which suits only probabilities.

    Arguments and errors as of `best_thresholds`; the result is for `SpanTask.fit_thresholds`.
    """
    best = best_thresholds(examples, predictions, null_scores)
    unanswerable = sum(not example.answers for example in examples)
    if best["best_f1"] <= 100 * unanswerable / len(examples):
        return min(null_scores.values())
    # The next number of those that models compute with.
    return float(np.nextafter(np.float32(best["best_f1_thresh"]), np.float32(np.inf)))


def _summary(exact, word_f1, ids):
    return {
        "exact": 100.0 * sum(exact[id] for id in ids) / len(ids),
        "f1": 100.0 * sum(word_f1[id] for id in ids) / len(ids),
        "total": len(ids),
    }
