"""Distillation: a pre-training run in which a teacher takes part."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig
from albert_keras.distillation.teaching import Teaching
from albert_keras.formats.open_weights import open_weights
from albert_keras.training.pretrain import PretrainingResult, pretrain
from albert_keras.training.stages import stages_of
from data_pipeline.records.record_files import RecordFiles


def distill(
    teacher: str | Path,
    data: str | Path,
    out: str | Path,
    config: DistillationConfig | None = None,
    eval_data: str | Path | None = None,
    max_steps: int | None = None,
    teacher_step: int | str | None = None,
    albert_config: AlbertConfig | str | Path | None = None,
    tokenizer: Any = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    **flags: Any,
) -> PretrainingResult:
    """Trains a student on records, with the losses of pre-training and losses towards a teacher.

    The result is an ordinary pre-training run: it resumes by the same call, and `evaluate`,
    `export` and `finetune` take it.

    Args:
        teacher: str or Path. A pre-trained model, as `path` of `open_weights`, with the vocabulary
            of the records. The student counts as trained on the teacher's training records, too.
        data, out, eval_data, max_steps, callbacks: As in `pretrain`.
        config: DistillationConfig. None takes the defaults.
        teacher_step, albert_config, tokenizer: As `step`, `albert_config` and `tokenizer` of
            `open_weights`.
        **flags: Single settings by the keywords of `options_of(DistillationConfig)`.

    Raises:
        InputError: If teacher, student, records and settings do not fit together; and as
            `pretrain`.
        TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.

    Source:
        Sanh et al. 2019: DistilBERT (https://arxiv.org/abs/1910.01108).

    Example:
        distill("runs/bert", "records/", "runs/student", size="distilbert-mini", steps=2000)
    """
    config = (config or DistillationConfig()).with_flags(**flags)
    records = RecordFiles.of(data)
    student = config.albert_config(records.info.vocab_size)
    opened = open_weights(teacher, teacher_step, albert_config, tokenizer)
    teaching = Teaching(opened, config, student)
    shape = opened.albert_config
    for stage in stages_of(config, records, student):
        stage.records.check_for(
            str(opened), shape.vocab_size, shape.max_position_embeddings, opened.tokenizer.digest
        )
    return pretrain(
        data,
        out,
        config,
        eval_data,
        max_steps,
        callbacks=callbacks,
        start=teaching,
    )
