"""The runs of a folder, as a list, and what the files of a run say. No TensorFlow."""

import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import Place, find_ours
from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run_record import read_record
from albert_keras.tasks.results import FinetuneResult, best_seed, first_split, read_results
from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)

#: The score that a pre-training is listed with.
_PRETRAINING_SCORE = "masked_lm_accuracy"


class RunSummary(NamedTuple):
    """A run in a list."""

    path: str
    kind: str  # "pretraining" or "finetuning"
    model: str | None  # the nearest named model, with "*" if its shape differs
    step: int  # the last step in the log
    steps: int | None  # the steps of a complete run; None if it ends by its time
    metric: str | None  # name of the score
    score: float | None  # on held-out data; None without one, of a fine-tuning until its end
    seconds: float  # time of training, without start-up


class Training(NamedTuple):
    """A training of a run: of a fine-tuning one seed."""

    path: Path
    record: dict[str, Any]  # content of `run.json`
    log: list[dict[str, Any]]  # see `read_log`
    evaluations: list[tuple[int, dict[str, Any]]]  # see `read_evaluations`


class RunContent(NamedTuple):
    """What the files of a run or a fine-tuning say, see `read_run`."""

    path: Path
    kind: str  # "pretraining" or "finetuning"
    trainings: list[Training]  # those that have started: itself, or one for each seed
    result: FinetuneResult | None  # of a complete fine-tuning


def find_runs(folder: str | Path) -> list[RunSummary]:
    """Lists the runs in a folder and in its subfolders, sorted by path; a run contains no others.

    Raises:
        InputError: If the folder does not exist.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"`{folder}` does not exist or is not a folder. It must contain runs.")
    found = []
    for path, names, _ in os.walk(folder):
        names[:] = sorted(name for name in names if not name.startswith("."))  # being written
        try:
            place = find_ours(Path(path))
            if place is None or place.run_kind is None:
                continue
            found.append(summarize(read_run(place)))
        except InputError as error:
            logger.warning("`%s` is not listed: %s", path, error)
        names.clear()
    return found


def summarize(run: RunContent) -> RunSummary:
    """Describes a run or a fine-tuning for a list."""
    model, steps = None, None
    if run.trainings:
        record = run.trainings[0].record
        settings = AlbertConfig.from_dict(record["albert_config"]).as_settings()
        model = settings["size"] + ("*" if len(settings) > 1 else "")
        training = record["config"]["training"]
        # The steps of the settings end no run with a time budget.
        steps = None if training.get("time_budget") else training.get("steps")
    metric, score = _score_of(run)
    lines = [line for one in run.trainings for line in one.log]
    return RunSummary(
        path=str(run.path),
        kind=run.kind,
        model=model,
        step=max((line["step"] for line in lines), default=0),
        steps=steps,
        metric=metric,
        score=score,
        seconds=sum(line.get("seconds", 0.0) for line in lines),
    )


def _score_of(run):
    """Returns name and value of the score of a run, None if it was not scored on held-out data."""
    if run.result is not None:
        metric, split = run.result.metric, first_split(run.result)
        return metric, best_seed(run.result).scores[split][metric]
    evaluations = run.trainings[0].evaluations if run.kind == "pretraining" else []
    if evaluations and _PRETRAINING_SCORE in evaluations[-1][1]:
        return _PRETRAINING_SCORE, evaluations[-1][1][_PRETRAINING_SCORE]
    return None, None


def read_run(path: str | Path | Place) -> RunContent:
    """Reads what describes a run or a fine-tuning; of its checkpoints nothing.

    Raises:
        InputError: If the folder is not a run, or is damaged.
    """
    place = path if isinstance(path, Place) else find_ours(Path(path))
    if place is None or place.run_kind is None:
        raise InputError(
            f"`{path}` is not a run or a fine-tuning: it has no run.json and no results.json. "
            "`albert-keras runs list FOLDER` lists the runs of a folder.",
            Mistake.NOT_A_RUN,
        )
    folders = [place.path] if place.kind == "run" else sorted(place.path.glob("seed-*"))
    trainings = [
        Training(
            folder, read_record(folder / "run.json"), read_log(folder), read_evaluations(folder)
        )
        for folder in folders
        if (folder / "run.json").is_file()
    ]
    result = read_results(place.path) if (place.path / "results.json").is_file() else None
    return RunContent(place.path, place.run_kind, trainings, result)
