"""Fine-tuned runs, and their models, which answer."""

import contextlib
import logging
from pathlib import Path
from typing import Any

from albert_keras.formats.detection import best_run, detect, kind_of_run
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.strategy import build_strategy, describe_devices
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import write_json
from data_pipeline.limits import reading_json, with_digest

logger = logging.getLogger(__name__)

_TUNED = "tuned.json"


def is_converted(run: Run) -> bool:
    """Returns whether a fine-tuned run was converted from another format: it has no examples."""
    return run.record["data"].get("fingerprint") == CONVERTED


def save_tuned(run: Run, tuned: dict[str, float]):
    """Saves the result of `Task.tuned_answers` in the folder of a run."""
    write_json(run.path / _TUNED, with_digest(tuned), indent=None)


def read_tuned(run: Run) -> dict[str, float]:
    """Returns what `save_tuned` saved in the folder of a run, or an empty dict."""
    path = run.path / _TUNED
    if not path.is_file():
        return {}
    with reading_json(path) as values:
        return {name: float(value) for name, value in values.items()}


def find_run(path: str | Path) -> Path:
    """Finds the run in a folder, or in the folder of a fine-tuning its best run.

    Raises:
        InputError: If there is no fine-tuned run, or the fine-tuning is not complete.
    """
    wanted = (
        "It must be a fine-tuned run, or the folder of a fine-tuning. Create one with "
        "`albert-keras finetune`."
    )
    place = detect(path, ("run", "fine-tuning"), wanted)
    if place.kind == "fine-tuning":
        return best_run(place.path)
    kind = kind_of_run(place.path)
    if kind != "finetuning":
        raise InputError(
            f"`{path}` must be a fine-tuned run. Received: a run of {kind}. Fine-tune it with "
            "`albert-keras finetune`; or, to fill masks, export it with `albert-keras export` "
            "and use the export.",
            Mistake.NOT_FINETUNED,
        )
    return place.path


def task_of(run: Run) -> Task:
    """Returns the task of a fine-tuned run with its files, which need not exist any more."""
    return build_task(TaskConfig(**run.record["config"]["task"]))


def open_finetuned(
    path: str | Path,
    step: int | str | None = "best",
    precision: str | None = None,
    strategy: str | None = None,
) -> Any:
    """Returns a fine-tuned model, an AlbertTaskModel, with its task and its tokenizer.

    Args:
        path: Folder of a fine-tuning or of one of its runs, see `find_run`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        precision: See `Run.load_model`.
        strategy: See `strategy.py`; None takes the current strategy of TensorFlow.

    Raises:
        InputError: If there is none, or it is damaged.

    Example:
        model = open_finetuned("runs/sst-2")
        model.predict(["a gripping, funny film"])[0].label
    """
    run = Run.open(find_run(path))
    task = task_of(run)
    scope = contextlib.nullcontext()
    if strategy is not None:
        built = build_strategy(strategy)
        used = precision or run.record["config"]["training"]["precision"]
        logger.info("predicting on %s in %s", describe_devices(built), used)
        scope = built.scope()
    with scope:
        model = run.load_model(step, precision, task=task)
    model.task = build_task(task.config.replace(train=None, dev=None, data_dir=None))
    model.tokenizer, model.tuned = run.tokenizer, read_tuned(run)
    return model
