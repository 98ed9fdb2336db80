"""Fine-tuned runs, and their models, which answer."""

import contextlib
import logging
from pathlib import Path
from typing import Any

from albert_keras.formats.detection import Place, detect
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.run import Run
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.strategy import build_strategy, describe_devices
from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)


def open_run(path: str | Path | Place | Run) -> Run:
    """Opens the fine-tuned run in a folder, or in the folder of a fine-tuning its best run.

    Raises:
        InputError: If there is no fine-tuned run, or the fine-tuning is not complete.
    """
    wanted = (
        "It must be a fine-tuned run, or the folder of a fine-tuning. Create one with "
        "`albert-keras finetune`."
    )
    if isinstance(path, Run):
        return path
    place = detect(path, ("run", "fine-tuning"), wanted)
    if place.run is None or place.run_kind != "finetuning":
        raise InputError(
            f"`{path}` must be a fine-tuned run. Received: a run of {place.run_kind}. Fine-tune it "
            "with `albert-keras finetune`; or, to fill masks, export it with `albert-keras export` "
            "and use the export.",
            Mistake.NOT_FINETUNED,
        )
    return Run.open(place.run)


def task_of(run: Run) -> Task:
    """Returns the task of a fine-tuned run with its files, which need not exist any more."""
    return build_task(TaskConfig(**run.record["config"]["task"]))


def open_finetuned(
    model: str | Path | Place | Run,
    step: int | str | None = "best",
    strategy: str | None = None,
) -> Any:
    """Returns a fine-tuned model, a Keras model with its preprocessor, labels and thresholds.

    Args:
        model: Folder of a fine-tuning or of one of its runs, see `open_run`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        strategy: See `strategy.py`; None takes the current strategy of TensorFlow.

    Raises:
        InputError: If there is none, or it is damaged.

    Example:
        model = open_finetuned("runs/sst-2")
        model.answer(["a gripping, funny film"])[0].label
    """
    run, scope = open_run(model), contextlib.nullcontext()
    opened = open_weights(run.path, run.checkpoints.choose(step))
    if strategy is not None:
        built = build_strategy(strategy)
        precision = run.record["config"]["training"]["precision"]
        logger.info("predicting on %s in %s", describe_devices(built), precision)
        scope = built.scope()
    with scope:
        return opened.build()
