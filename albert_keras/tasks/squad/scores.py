"""Exact match and F1 of answers, to the last digit as the official SQuAD scripts compute them.

The scripts of the two versions differ where both texts are empty, and where a prediction is
missing; so there are two functions.
"""

import collections
import logging
import re
import string
from collections.abc import Iterable, Mapping, Sequence

from albert_keras.tasks.examples import QuestionExample
from data_pipeline.errors import InputError

_logger = logging.getLogger(__name__)

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Returns a text as answers are compared: lowered, without ASCII punctuation and the words a,
    an and the, in single spaces.

    Source:
        `normalize_answer` in `evaluate-v1.1.py` and `evaluate-v2.0.py`, SQuAD.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(gold: str, predicted: str) -> int:
    """Returns 1 if the normalised texts are equal, else 0."""
    return int(normalize_answer(gold) == normalize_answer(predicted))


def f1(gold: str, predicted: str, version: int = 2) -> float:
    """Returns the harmonic mean of precision and recall over words, with repetitions.

    Args:
        gold: str.
        predicted: str.
        version: int. 1 or 2. Of two texts without words, version 1 says 0, version 2 says 1.

    Returns:
        float. Between 0 and 1.
    """
    gold_words = normalize_answer(gold).split()
    predicted_words = normalize_answer(predicted).split()
    if version == 2 and not (gold_words and predicted_words):
        return int(gold_words == predicted_words)
    shared = collections.Counter(gold_words) & collections.Counter(predicted_words)
    same = sum(shared.values())
    if same == 0:
        return 0
    precision = 1.0 * same / len(predicted_words)
    recall = 1.0 * same / len(gold_words)
    return (2 * precision * recall) / (precision + recall)  # in this order, to the last digit


def score_v1(
    examples: Iterable[QuestionExample], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Returns what `evaluate-v1.1.py` prints.

    Args:
        examples: iterable of QuestionExample, with answers.
        predictions: mapping of str to str. Id -> text. A missing one counts as wrong, and is
            logged.

    Returns:
        dict: "exact_match" and "f1", in percent.

    Raises:
        InputError: If there is no example, or one without answers.
    """
    examples = _checked(examples)
    exact, word_f1 = question_scores(examples, predictions, version=1)
    _log_missing(examples, predictions, "counted as wrong")
    return {
        "exact_match": 100.0 * sum(exact.values()) / len(examples),
        "f1": 100.0 * sum(word_f1.values()) / len(examples),
    }


def question_scores(
    examples: Iterable[QuestionExample], predictions: Mapping[str, str], version: int = 2
) -> tuple[dict[str, int], dict[str, float]]:
    """Returns the scores of each question, 0 to 1.

    Args:
        examples: iterable of QuestionExample. One without answers has the gold answer "" in
            version 2.
        predictions: mapping of str to str. Id -> text. Missing ones are left out.
        version: int. 1 or 2, whose rules.

    Returns:
        dict of str to int, exact matches; dict of str to float, F1.

    Raises:
        InputError: If an example of version 1 has no answers.

    Source:
        `evaluate` in `evaluate-v1.1.py`, `get_raw_scores` in `evaluate-v2.0.py`.
    """
    exact, word_f1 = {}, {}
    for example in examples:
        golds = [answer.text for answer in example.answers]
        if version == 1 and not golds:
            raise InputError(f"Question {example.id!r} should have an answer to be scored.")
        if version == 2:
            golds = [gold for gold in golds if normalize_answer(gold)] or [""]
        if example.id in predictions:
            predicted = predictions[example.id]
            exact[example.id] = max(exact_match(gold, predicted) for gold in golds)
            word_f1[example.id] = max(f1(gold, predicted, version) for gold in golds)
    return exact, word_f1


def score_v2(
    examples: Iterable[QuestionExample],
    predictions: Mapping[str, str],
    no_answer_probabilities: Mapping[str, float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """Returns what `evaluate-v2.0.py` prints.

    Args:
        examples: iterable of QuestionExample.
        predictions: mapping of str to str. Id -> text, "" for no answer. Missing questions are
            left out of all figures, and logged.
        no_answer_probabilities: mapping of str to float, or None. Id -> how probable it is that
            there is no answer. With it, the best thresholds are found too.
        threshold: float. Questions with a higher probability count as not answered, whatever the
            prediction says. Scores that are no probabilities (logits) want `math.inf` here.

    Returns:
        dict: "exact", "f1" in percent and "total"; the same with "HasAns_" and "NoAns_" in front
        for questions with and without answers, where there are any; and the entries of
        `best_thresholds`.

    Raises:
        InputError: If there is no example or no prediction for any, or the probability of a
            predicted question is missing.
    """
    examples = _checked(examples)
    exact, word_f1 = question_scores(examples, predictions)
    if not exact:
        raise InputError("The predictions should be for these questions, but none is.")
    _log_missing(examples, predictions, "left out")
    scored = [example for example in examples if example.id in predictions]
    with_answers = [example.id for example in scored if example.answers]
    without_answers = [example.id for example in scored if not example.answers]
    final_exact, final_f1 = dict(exact), dict(word_f1)
    if no_answer_probabilities is not None:
        _check_all_there(exact, no_answer_probabilities)
        answerable = set(with_answers)
        for id in exact:
            if no_answer_probabilities[id] > threshold:
                final_exact[id] = final_f1[id] = float(id not in answerable)
    scores = _summary(final_exact, final_f1, list(exact))
    for name, ids in (("HasAns", with_answers), ("NoAns", without_answers)):
        if ids:
            part = _summary(final_exact, final_f1, ids)
            scores |= {f"{name}_{key}": value for key, value in part.items()}
    if no_answer_probabilities is not None:
        scores |= best_thresholds(scored, predictions, no_answer_probabilities)
    return scores


def best_thresholds(
    examples: Sequence[QuestionExample],
    predictions: Mapping[str, str],
    null_scores: Mapping[str, float],
) -> dict[str, float]:
    """Finds the scores for "no answer" above which to leave questions unanswered.

    The search counts the question at the threshold itself as answered; `apply_null_threshold` of
    `squad_predictions`, like the original, does not answer it.

    Args:
        examples: sequence of QuestionExample.
        predictions: mapping of str to str. Id -> text, for every question the best text if it had
            an answer. Missing questions are left out.
        null_scores: mapping of str to float. Id -> score, higher for "no answer".

    Returns:
        dict: "best_exact" and "best_f1" in percent, "best_exact_thresh" and "best_f1_thresh".

    Raises:
        InputError: If there is no prediction for any example, or no score for a prediction.

    Source:
        `find_best_thresh` in `evaluate-v2.0.py`, the same as `find_best_thresh_v2` in
        google-research/albert, `squad_utils.py`.
    """
    best = {}
    exact, word_f1 = question_scores(examples, predictions)
    if not exact:
        raise InputError("The predictions should be for these questions, but none is.")
    _check_all_there(exact, null_scores)
    answerable = {example.id: bool(example.answers) for example in examples if example.id in exact}
    # Ties stay in the order of the scores, as there: of all of them, so that it is the same one.
    by_score = [id for id in sorted(null_scores, key=null_scores.__getitem__) if id in exact]
    for name, scores in (("exact", exact), ("f1", word_f1)):
        best_sum = current = sum(1 for has_answer in answerable.values() if not has_answer)
        threshold = 0.0
        for id in by_score:
            if answerable[id]:
                current += scores[id]
            elif predictions[id]:
                current -= 1
            if current > best_sum:
                best_sum, threshold = current, null_scores[id]
        best[f"best_{name}"] = 100.0 * best_sum / len(scores)
        best[f"best_{name}_thresh"] = threshold
    return best


def _checked(examples):
    examples = list(examples)
    if not examples:
        raise InputError("There should be at least one question to score. Received: none.")
    return examples


def _summary(exact, word_f1, ids):
    return {
        "exact": 100.0 * sum(exact[id] for id in ids) / len(ids),
        "f1": 100.0 * sum(word_f1[id] for id in ids) / len(ids),
        "total": len(ids),
    }


def _check_all_there(ids, scores):
    missing = [id for id in ids if id not in scores]
    if missing:
        raise InputError(
            f"Every predicted question should have a score for no answer. Missing: {len(missing)}, "
            f"the first is {missing[0]!r}."
        )


def _log_missing(examples, predictions, consequence):
    missing = [example.id for example in examples if example.id not in predictions]
    if missing:
        _logger.warning(
            "%d of %d questions have no prediction and are %s; the first is %r.",
            len(missing), len(examples), consequence, missing[0],
        )  # fmt: skip
