"""Scores of answers, to the last digit as the official SQuAD scripts compute them, and thresholds.

The scripts of the two versions differ where both texts are empty. A question of version 2.0 stays
unanswered if its score for "no answer" reaches a threshold.
"""

import collections
import re
import string
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from data_pipeline.errors import InputError

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


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

    All questions have a prediction (id -> text). One without answers is an InputError in version 1,
    and has the gold answer "" in version 2.

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
        predicted = predictions[example.id]
        exact[example.id] = int(normalize_answer(predicted) in map(normalize_answer, golds))
        word_f1[example.id] = max(f1(gold, predicted, version) for gold in golds)
    return exact, word_f1


def official_scores(
    examples: Sequence[QuestionExample], predictions: Mapping[str, str], version: int
) -> dict[str, float]:
    """Returns what `evaluate-v1.1.py` or `evaluate-v2.0.py` prints.

    Args:
        predictions: Id -> text, "" for no answer.
        version: 1 or 2.

    Returns:
        Of version 1 "exact_match" and "f1", in percent. Of version 2 "exact", "f1" in percent and
        "total"; the same with "HasAns_" and "NoAns_" in front for questions with and without
        answers, if there are any.

    Raises:
        InputError: If there is no example; in version 1 if one has no answers.
    """
    if not examples:
        raise InputError("There must be at least one question to score. Received: none.")
    exact, word_f1 = question_scores(examples, predictions, version)
    if version == 1:
        return {
            "exact_match": 100.0 * sum(exact.values()) / len(examples),
            "f1": 100.0 * sum(word_f1.values()) / len(examples),
        }
    scores = _summary(exact, word_f1, list(exact))
    for name, has_answer in (("HasAns", True), ("NoAns", False)):
        ids = [example.id for example in examples if bool(example.answers) == has_answer]
        if ids:
            part = _summary(exact, word_f1, ids)
            scores |= {f"{name}_{key}": value for key, value in part.items()}
    return scores


def null_threshold(
    examples: Sequence[QuestionExample],
    predictions: Mapping[str, str],
    null_scores: Mapping[str, float],
) -> float:
    """Finds the score for "no answer" from which F1 is best if a question is left unanswered.

    It is just above the threshold that the official search finds: that search counts the question
    at the threshold as answered, whereas models answer strictly below it. And where
    answering nothing is best, the official search returns 0, which suits only probabilities.

    Args:
        predictions: Id -> text, for every question the best text if it had an answer.
        null_scores: Id -> score, higher for "no answer".

    Source:
        `find_best_thresh` in `evaluate-v2.0.py`, the same as `find_best_thresh_v2` in
        google-research/albert, `squad_utils.py`.
    """
    _, word_f1 = question_scores(examples, predictions)
    has_answer = {example.id: bool(example.answers) for example in examples}
    best = current = len(examples) - sum(has_answer.values())  # if nothing is answered
    threshold = None
    # Equal scores keep the order in which they are given, as in the official script.
    for id in sorted(null_scores, key=null_scores.__getitem__):
        if has_answer[id]:
            current += word_f1[id]
        elif predictions[id]:
            current -= 1
        if current > best:
            best, threshold = current, null_scores[id]
    if threshold is None:
        return min(null_scores.values())
    # The next number of those that models compute with.
    return float(np.nextafter(np.float32(threshold), np.float32(np.inf)))


def _summary(exact, word_f1, ids):
    return {
        "exact": 100.0 * sum(exact[id] for id in ids) / len(ids),
        "f1": 100.0 * sum(word_f1[id] for id in ids) / len(ids),
        "total": len(ids),
    }
