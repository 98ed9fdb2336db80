"""The threshold of SQuAD 2.0: the score for "no answer" from which a question stays unanswered."""

from collections.abc import Mapping, Sequence

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.squad.scores import NO_PREDICTION, question_scores
from data_pipeline.errors import InputError


def null_threshold(examples, predictions, null_scores) -> float:
    """Finds the threshold with the best F1.

    It is just above the threshold that the official search finds: that search counts the question
    at the threshold as answered, whereas `apply_null_threshold` answers strictly below it. And
    where answering nothing is best, the official search returns 0, which suits only probabilities.

    Args:
        examples, predictions, null_scores: As in `best_thresholds`.

    Returns:
        float. For `apply_null_threshold`.

    Raises:
        InputError: As `best_thresholds`.
    """
    best = best_thresholds(examples, predictions, null_scores)
    unanswerable = sum(not example.answers for example in examples)
    if best["best_f1"] <= 100 * unanswerable / len(examples):
        return min(null_scores.values())
    return float(np.nextafter(best["best_f1_thresh"], np.inf))


def apply_null_threshold(
    predictions: Mapping[str, str], null_scores: Mapping[str, float], threshold: float
) -> dict[str, str]:
    """Returns the predictions, with "" where the null score is at or above a threshold.

    Args:
        predictions: mapping of str to str. Id -> text.
        null_scores: mapping of str to float. Id -> score for "no answer", for each prediction.
        threshold: float. As returned by `null_threshold`.
    """
    return {id: text if null_scores[id] < threshold else "" for id, text in predictions.items()}


def best_thresholds(
    examples: Sequence[QuestionExample],
    predictions: Mapping[str, str],
    null_scores: Mapping[str, float],
) -> dict[str, float]:
    """Finds the official best thresholds for exact match and for F1.

    Args:
        examples: sequence of QuestionExample.
        predictions: mapping of str to str. Id -> text, for every question the best text if it had
            an answer. Missing questions are ignored.
        null_scores: mapping of str to float. Id -> score, higher for "no answer".

    Returns:
        dict: "best_exact" and "best_f1" in percent, "best_exact_thresh" and "best_f1_thresh".

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
