"""Fine-tuned runs, and their models, which answer."""

import contextlib
import logging
from pathlib import Path
from typing import Any

import keras

from albert_keras.formats.detection import Place, detect
from albert_keras.formats.keras_file import KerasFile
from albert_keras.models.text_model import AlbertForTexts
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
    """Saves the result of `Task.tuned` in the folder of a run."""
    write_json(run.path / _TUNED, with_digest(tuned), indent=None)


def read_tuned(run: Run) -> dict[str, float]:
    """Returns what `save_tuned` saved in the folder of a run, or an empty dict."""
    path = run.path / _TUNED
    if not path.is_file():
        return {}
    with reading_json(path) as values:
        return {name: float(value) for name, value in values.items()}


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
    precision: str | None = None,
    strategy: str | None = None,
) -> Any:
    """Returns a fine-tuned model, a Keras model with its preprocessor, labels and thresholds.

    Args:
        model: Folder of a fine-tuning or of one of its runs, see `open_run`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        precision: See `Run.load_model`.
        strategy: See `strategy.py`; None takes the current strategy of TensorFlow.

    Raises:
        InputError: If there is none, or it is damaged.

    Example:
        model = open_finetuned("runs/sst-2")
        model.answer(["a gripping, funny film"])[0].label
    """
    run = open_run(model)
    task, scope = task_of(run), contextlib.nullcontext()
    if strategy is not None:
        built = build_strategy(strategy)
        used = precision or run.record["config"]["training"]["precision"]
        logger.info("predicting on %s in %s", describe_devices(built), used)
        scope = built.scope()
    with scope:
        return run.load_model(step, precision, task=task, thresholds=read_tuned(run))


def open_text_model_of(
    place: Place, step: int | str | None = None, precision: str | None = None
) -> Any:
    """Returns the model of a fine-tuning or of a `.keras` file with its head; None if it has none.

    Args:
        place: What is at the `source` of `AlbertForTexts.from_preset`.
        step: Of a run; None is the best one.
        precision: Of a run, see `Run.load_model`.
    """
    if place.kind == "keras":
        model: keras.Model = KerasFile(place.path).load()
        return model if isinstance(model, AlbertForTexts) and model.preprocessor else None
    if place.run_kind == "finetuning":
        return open_finetuned(place, step or "best", precision)
    return None
