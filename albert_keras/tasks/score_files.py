"""Scores predictions in the official files of a task, whoever made them."""

from pathlib import Path
from typing import NamedTuple

from albert_keras.tasks.classification.glue_files import label_kind
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.spans.files import NULL_ODDS, PREDICTIONS, read_questions
from albert_keras.tasks.spans.scores import best_thresholds, official_scores
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import examples_from, read_checked
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: Tasks whose files of predictions can be scored.
SCORED_TASKS = (
    *(name for name, task in GLUE_TASKS.items() if task.labelled_splits),
    "squad1",
    "squad2",
)


class FileScores(NamedTuple):
    """Scores of a file of predictions; for SQuAD in percent."""

    task: str
    examples: int
    scores: dict[str, float]
    positive_class: str | None = None  # the class that the score `f1` of a GLUE task refers to


def score_predictions(
    task: str, data: str | Path, predictions: str | Path, null_odds: str | Path | None = None
) -> FileScores:
    """Scores a file of predictions as the official scripts do.

    Args:
        task: One of `SCORED_TASKS`.
        data: The labelled file of the task.
        predictions: For SQuAD a JSON object of id to text; for GLUE a row `index`,
            `prediction` (name of the class, or score) for each row of `data`, as the leaderboard
            takes it. Rows are matched by order.
        null_odds: For squad2 a JSON object of id to score for "no answer". The best thresholds are
            found with it; the predictions are scored as they are.

    Raises:
        InputError: If a file cannot be used, with file and line.
    """
    if task not in SCORED_TASKS:
        raise InputError(f"`task` {task!r} is unknown{did_you_mean(task, SCORED_TASKS)}")
    if null_odds is not None and task != "squad2":
        raise InputError(f"`null_odds` must not be given for {task}. Received: {null_odds}.")
    if task in GLUE_TASKS:
        glue = build_task(TaskConfig(name=task))
        examples, given = glue.read_file(data, labelled=True), _glue_predictions(task, predictions)
        if len(given) != len(examples):
            raise InputError(
                f"`{predictions}` must contain a prediction for each of {len(examples)} rows. "
                f"Received: {len(given)}."
            )
        scores = glue.label_scores(examples, given)
        return FileScores(task, len(examples), scores, glue.positive_class)
    examples, answers = (
        read_questions(data, needs_positions=False),
        read_checked(PREDICTIONS, predictions),
    )
    scores = official_scores(examples, answers, version=1 if task == "squad1" else 2)
    if null_odds is not None:
        scores |= best_thresholds(examples, answers, read_checked(NULL_ODDS, null_odds))
    return FileScores(task, len(examples), scores)


def _glue_predictions(task, path):
    """Returns the names or scores in a file as the leaderboard of GLUE takes it, in its order."""
    table, kind = read_raw_table(path, ["index", "prediction"], is_official=True), label_kind(task)

    def prediction(number, row):
        return kind([row.fields["prediction"]], ["prediction"])

    return examples_from(path, table.rows, prediction, may_skip=False)
