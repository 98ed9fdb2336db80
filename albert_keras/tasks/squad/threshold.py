"""From which score for "no answer" on a question is left unanswered."""

import numpy as np

from albert_keras.tasks.squad.scores import best_thresholds


def null_threshold(examples, predictions, null_scores) -> float:
    """Finds the threshold below which answering is best for F1.

    It lies just above the one that the official search finds: that counts the question at the
    threshold as answered, which answers given strictly below it would not. And where answering
    nothing is best, the official search says 0, which suits probabilities alone.

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
