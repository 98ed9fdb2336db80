"""Scores on development examples during a run, which determine its best checkpoint."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import keras

from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.models.text_rows import TextRows
from albert_keras.runs.log_file import log_evaluation, read_evaluations
from albert_keras.tasks.finetune_config import FinetuneTraining
from albert_keras.tasks.metrics import score_texts, thresholds_text
from albert_keras.tasks.task import Task
from albert_keras.training.run_callbacks import Progress

logger = logging.getLogger(__name__)


def is_enough(values: list[float], patience: int | None) -> bool:
    """Returns whether to stop early: the last `patience` scores were not above the best before.

    A `patience` of None never stops early.
    """
    if patience is None or not values:
        return False
    return len(values) - 1 - values.index(max(values)) >= patience


class ScoredSplits(NamedTuple):
    """Answers to development examples, and their scores, by split."""

    answers: dict[str, list[Any]]
    scores: dict[str, dict[str, float]]
    thresholds: dict[str, float]  # see `Task.fit_thresholds`
    collapse: str | None  # see `Task.collapse`


def score_splits(
    task: Task,
    dev: dict[str, tuple[list, TextRows]],
    model: AlbertForTexts,
    predictor: RowPredictor,
    thresholds: dict[str, float] | None = None,
) -> ScoredSplits:
    """Answers and scores examples.

    Thresholds are fitted on the first split, unless `thresholds` are given, and are in the
    `thresholds` of the model then; what can collapse does so on the first split.
    """
    answers, scores = {}, {}
    for split, (examples, rows) in dev.items():
        model.thresholds = dict(task.first_thresholds if thresholds is None else thresholds)
        ids = [example.id for example in examples]
        answers[split] = rows.answers(model, predictor.predict(rows), ids)
        if thresholds is None:
            answers[split], thresholds = task.fit_thresholds(examples, answers[split])
            if thresholds:
                logger.info("thresholds fitted on %s: %s", split, thresholds_text(thresholds))
            model.thresholds = dict(thresholds)
        scores[split] = task.scores(examples, answers[split])
    return ScoredSplits(
        answers, scores, thresholds or {}, task.collapse(next(iter(answers.values())))
    )


class ScoreDev(keras.callbacks.Callback):
    """Scores the model at intervals and at the end, and stops a run that no longer improves.

    Must come after `Report` and before `SaveCheckpoints`.

    Args:
        folder: Of the run; scores go to its log.
        dev: Examples and their rows by split; the first one determines the best.
        model: AlbertForTexts.
        predictor: RowPredictor of the model.
        training: Its `evaluate_every`, `patience`, see `is_enough`, and `steps`.
        progress: Progress of the run.
        writes: Whether this worker writes the log.

    Attributes:
        score: float or None. The metric of the task at `step`, negative, as lower counts as better.
        step: int or None.
        collapse: str or None. What the last answers had in common, see `Task.collapse`.
    """

    def __init__(
        self,
        folder: Path,
        task: Task,
        dev: dict[str, tuple[list, TextRows]],
        model: AlbertForTexts,
        predictor: RowPredictor,
        training: FinetuneTraining,
        progress: Progress,
        writes: bool = True,
    ):
        super().__init__()
        self.folder, self.task, self.dev = folder, task, dev
        self.answering, self.predictor = model, predictor
        self.every, self.patience, self.writes = training.evaluate_every, training.patience, writes
        self.progress = progress
        self.score = self.step = self.collapse = None
        self.scored_on = None  # a run has only these examples
        self._values = values_so_far(folder, task.metric, progress.first_step)

    def on_train_batch_end(self, batch, logs=None):
        if not self.progress.is_at(self.every):
            return
        scored, scores = score_splits(self.task, self.dev, self.answering, self.predictor), {}
        self.collapse = scored.collapse
        for number, (split, found) in enumerate(scored.scores.items()):
            prefix = f"{split}/" if number else ""
            scores |= {f"{prefix}{name}": value for name, value in found.items()}
        value = scores[self.task.metric]
        # Of equals the newest counts, as among checkpoints.
        best = max(self._values, default=float("-inf"))
        is_best = value >= best
        self._values.append(value)
        self.step, self.score = self.progress.step, -value
        self.progress.save_soon |= is_best
        if self.writes:
            log_evaluation(self.folder, self.step, scores)
            texts = score_texts(scores, self.task.positive_class, "{:.4g}".format)
            mark = "  *best" if is_best else ""
            mark += " (equal to an earlier evaluation; the newest is used)" if value == best else ""
            logger.info("dev at step %d: %s%s", self.step, "  ".join(texts), mark)
            if self.collapse:
                logger.warning("At step %d, %s.", self.step, self.collapse)
        if is_enough(self._values, self.patience) and self.step < self.progress.last_step:
            logger.info(
                "Stopping early: no better score in the last %d evaluations.", self.patience
            )
            self.progress.last_step = self.step  # the end, not a stop to resume from
            self.progress.stop_soon = True


def values_so_far(folder: Path, metric: str, step: int) -> list[float]:
    """Returns the scores in a run's log up to a step, in their order."""
    return [
        scores[metric] for at, scores in read_evaluations(folder) if at <= step and metric in scores
    ]
