"""Distillation on a task: a fine-tuning on the answers of a fine-tuned teacher as well."""

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TaskDistillationConfig, TaskTeachingConfig
from albert_keras.distillation.student import TEACHER_LOGITS, taught_class
from albert_keras.distillation.warm_start import check_layers, start_warm
from albert_keras.formats.loading import ArrayTensors, encoder_digest
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_rows import Rows, TextRows
from albert_keras.shape import HEADS
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.results import FinetuneResult
from albert_keras.tasks.task_data import Examples, TaskData
from data_pipeline.errors import InputError

#: Kinds of tasks whose examples have one row with one tensor of logits.
_TAUGHT_KINDS = ("classification", "multi_label", "regression", "multi_regression", "choice")

logger = logging.getLogger(__name__)


def distill_task(
    teacher: str | Path,
    out: str | Path,
    config: TaskDistillationConfig | None = None,
    origin: str | Path | None = None,
    student: str | AlbertConfig | None = None,
    seeds: int | Sequence[int] = 1,
    allow_changes: Iterable[str] = (),
    random_baseline: bool = False,
    **flags: Any,
) -> FinetuneResult:
    """Fine-tunes a student on a task, on its examples and on the answers of a teacher to them.

    The teacher answers the training examples once, before the training.

    Args:
        teacher: str or Path. A fine-tuning of the same task, or one of its runs, which answers with
            its best checkpoint. Its vocabulary may be another one if `origin` is given.
        out, seeds, allow_changes, random_baseline: As in `finetune`.
        config: TaskDistillationConfig or None. None takes all settings from `flags`.
        origin: str, Path or None. The student's pre-trained weights, see `open_weights`.
        student: str, AlbertConfig or None. Instead of `origin` a named model, or its shape, which
            starts from the teacher's weights, see `start_warm`.
        **flags: Single settings by the keywords of `options_of(FinetuneConfig)`.

    Raises:
        InputError: If the teacher has another task, other labels, or a kind that has no soft
            labels; unless either `origin` or `student` is given; and as `finetune`.
        TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.

    Example:
        distill_task("runs/sst-2", "runs/small", origin="runs/student", task="sst-2",
                     data_dir="glue")
    """
    if config is None:
        config = TaskDistillationConfig.of({}, **flags)
    else:
        config = config.with_flags(**flags)
    if (origin is None) == (student is None):
        raise InputError(
            "A distillation on a task requires either the weights of a pre-trained student "
            "(`origin`) or the name of a model that starts from its teacher (`student`). "
            f"Received: {'none' if origin is None else 'both'} of them."
        )
    weights = open_weights(open_run(teacher).path)
    initial = open_weights(origin) if student is None else _started(weights, student)
    return finetune(
        initial,
        out,
        config,
        seeds=seeds,
        random_baseline=random_baseline,
        allow_changes=allow_changes,
        teaching=TaskTeaching(weights, config.distillation),
    )


class TaskTeaching:
    """A fine-tuned teacher, as `finetune` needs it."""

    def __init__(self, weights: OpenedModel, settings: TaskTeachingConfig):
        self._weights, self._settings = weights, settings

    def taught(self, data: TaskData) -> TaskData:
        """Returns the data of a task with the teacher's answers to the training examples.

        Raises:
            InputError: If the teacher has another task.
        """
        task = data.task
        if task.kind not in _TAUGHT_KINDS:
            kinds = ", ".join(_TAUGHT_KINDS)
            raise InputError(
                f"A task that is learned from a teacher must be of one of the kinds {kinds}. "
                f"Received: {task.kind}. Fine-tune a distilled model instead."
            )
        teacher = self._weights.path
        found = task_of(open_run(teacher))
        if found.kind != task.kind or tuple(found.labels) != tuple(task.labels):
            raise InputError(
                f"The teacher `{teacher}` must have the labels of the task, in their order. "
                f"Received: {found.kind} of {', '.join(found.labels) or 'no labels'}, for "
                f"{task.kind} of {', '.join(task.labels) or 'no labels'}."
            )
        logger.info("The teacher `%s` answers the training examples.", teacher)
        model = open_finetuned(teacher)
        rows = TextRows(model.preprocessor, task.columns(data.train.examples))
        logits = RowPredictor.of_model(model).predict(rows)["logits"]
        digest = encoder_digest(self._weights.tensors, HEADS["classifier"])
        return data._replace(
            train=Examples(data.train.examples, TaughtRows(data.train.rows, logits)),
            fingerprints=data.fingerprints
            | {"teacher": str(self._weights), "teacher_digest": digest},
            trainer_class=taught_class(task, self._settings),
        )


class TaughtRows(Rows):
    """Rows with the logits of a teacher, float32 [N, C], beside their targets."""

    def __init__(self, rows: Rows, logits: np.ndarray):
        self._rows, self._logits = rows, logits.astype(np.float32)
        self.lengths, self.max_seq_length = rows.lengths, rows.max_seq_length
        self.weights, self.targets = rows.weights, rows.targets

    def batch(self, rows, length=None):
        return self._rows.batch(rows, length) | {TEACHER_LOGITS: self._logits[rows]}


def _started(weights: OpenedModel, student: str | AlbertConfig) -> OpenedModel:
    """Returns the first weights of a student that starts from the weights of its teacher."""
    config = student
    if not isinstance(config, AlbertConfig):
        config = AlbertConfig.from_name(config, vocab_size=weights.tokenizer.vocab_size)
    check_layers(weights.albert_config, config, str(weights))
    model = AlbertForPretraining(config, sentence_head=False, dtype="float32")
    for line in start_warm(weights, model).lines():
        logger.info("student: %s", line)
    return dataclasses.replace(
        weights,
        kind="warm start",
        albert_config=config,
        _open=lambda: ArrayTensors.of_model(model),
    )
