"""Answers to questions, and the files in which they are handed in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file


class DecodedAnswers(NamedTuple):
    """The answers to questions.

    Attributes:
        predictions: dict of str to str. Id -> the best text. Never "no answer" by choice: see
            `apply_null_threshold`.
        nbest: dict of str to list of dict. Id -> "text", "probability", "start_log_prob" and
            "end_log_prob" of the best texts, best first.
        null_scores: dict of str to float, or None. Id -> score for "no answer"; version 2 only.
        places: dict of str to (int, int) or None; or None where not known. Id -> the first
            character of the best text in the raw passage, and one more than the last. In no file.
    """

    predictions: dict[str, str]
    nbest: dict[str, list[dict]]
    null_scores: dict[str, float] | None = None
    places: dict[str, tuple[int, int] | None] | None = None

    def save(self, folder, threshold: float | None = None) -> list[Path]:
        """Writes `predictions.json`, `nbest_predictions.json` and, in version 2, `null_odds.json`.

        Args:
            folder: str or Path. An existing folder; older files of these names are replaced.
            threshold: float or None. For `apply_null_threshold`; None answers every question.

        Returns:
            list of Path. The files.
        """
        predictions = self.predictions
        if threshold is not None:
            predictions = apply_null_threshold(predictions, self.null_scores, threshold)
        contents = {"predictions.json": predictions, "nbest_predictions.json": self.nbest}
        if self.null_scores is not None:
            contents["null_odds.json"] = self.null_scores
        for name, content in contents.items():
            with whole_file(Path(folder) / name) as temporary:
                temporary.write_text(json.dumps(content, indent=4) + "\n", encoding="ascii")
        return [Path(folder) / name for name in contents]


def apply_null_threshold(
    predictions: Mapping[str, str], null_scores: Mapping[str, float], threshold: float
) -> dict[str, str]:
    """Returns the predictions, with "" where the null score is at or above a threshold.

    Args:
        predictions: mapping of str to str. Id -> text.
        null_scores: mapping of str to float. Id -> score for "no answer".
        threshold: float. Such as the `best_f1_thresh` of `squad_scores.best_thresholds`.

    Raises:
        InputError: If a prediction has no null score.
    """
    missing = [id for id in predictions if id not in (null_scores or {})]
    if missing:
        raise InputError(f"Every prediction should have a null score. Missing: {missing[0]!r}.")
    return {id: text if null_scores[id] < threshold else "" for id, text in predictions.items()}
