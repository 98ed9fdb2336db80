"""What the files of a run say about it, in one line of a list."""

import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import model_line
from albert_keras.runs.kind import kind_of_run
from albert_keras.runs.run_record import read_record
from albert_keras.tasks.results import best_seed, first_split, read_results
from albert_keras.training.loop.log_file import read_evaluations, read_log
from data_pipeline.errors import InputError, Mistake

#: Kind of a run whose files cannot be read.
DAMAGED = "damaged"
#: The score that a pre-training is listed with.
_PRETRAINING_SCORE = "masked_lm_accuracy"


class RunSummary(NamedTuple):
    """A run in a list."""

    path: str
    kind: str  # "pretraining", "finetuning", or DAMAGED
    model: str | None  # the nearest named model, with "*" if its shape differs
    shape: str | None  # the line that says what the model is
    step: int  # the last step in the log
    steps: int | None  # the steps of a complete run
    metric: str | None  # name of the score
    score: float | None
    is_held_out: bool  # whether the score is on data that was not trained on
    seconds: float  # time of training, without start-up
    bytes: int  # size on disk
    changed: str  # when a file was last written, ISO 8601 in UTC
    problem: str | None = None  # why it is DAMAGED


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
        try:
            is_run = kind_of_run(Path(path)) is not None
        except InputError:  # `summarize` says what is damaged
            is_run = True
        if is_run:
            found.append(summarize(path))
        # Folders with a dot are being written or removed.
        names[:] = [] if is_run else sorted(name for name in names if not name.startswith("."))
    return found


def summarize(path: str | Path) -> RunSummary:
    """Describes a run or a fine-tuning; its kind is DAMAGED if its files cannot be read.

    Raises:
        InputError: If the folder is not a run.
    """
    path = Path(path)
    if not path.is_dir():
        raise NotARun(path)
    size, changed = _size_and_time(path)
    common: dict[str, Any] = {"path": str(path), "bytes": size, "changed": changed}
    try:
        if kind_of_run(path) is None:
            raise NotARun(path)
        return RunSummary(**common, **_described(path))
    except NotARun:
        raise
    except (InputError, ValueError, KeyError, TypeError) as error:
        reason = str(error) if isinstance(error, InputError) else f"the log is damaged: {error}"
        empty = dict.fromkeys(("model", "shape", "steps", "metric", "score"))
        values = {"step": 0, "is_held_out": False, "seconds": 0.0, "problem": reason}
        return RunSummary(**common, **empty, **values, kind=DAMAGED)


class NotARun(InputError):
    """The folder is not a run or a fine-tuning."""

    def __init__(self, path: Path):
        problem = (
            "it has no run.json and no results.json" if path.is_dir() else "it is not a folder"
        )
        super().__init__(
            f"`{path}` is not a run or a fine-tuning: {problem}. `albert-keras runs list FOLDER` "
            "lists the runs of a folder.",
            Mistake.NOT_A_RUN,
        )


def training_folders(path: Path) -> list[Path]:
    """Returns the folders of the trainings of a run: itself, or one for each seed."""
    return [path] if (path / "run.json").is_file() else sorted(path.glob("seed-*"))


def first_training(path: Path) -> Path:
    """Returns the folder of the first training of a run; InputError if there is none."""
    folders = training_folders(path)
    if not folders:
        raise InputError(f"`{path}` has no training any more: it contains no folder `seed-...`.")
    return folders[0]


def scores_of(path: Path) -> dict[str, float]:
    """Returns the final scores of a run by name; names of training scores begin with "training".

    A fine-tuning has the scores of its best seed on the first split.
    """
    if (path / "results.json").is_file():
        result = read_results(path)
        return dict(best_seed(result).scores[first_split(result)])
    folder = first_training(path)
    log, evaluations = read_log(folder), read_evaluations(folder)
    names = ("loss", "masked_lm_loss", _PRETRAINING_SCORE, "sentence_order_accuracy")
    scores = {f"training {name}": log[-1][name] for name in names if log and name in log[-1]}
    for name, value in evaluations[-1][1].items() if evaluations else ():
        if isinstance(value, float):
            scores[name] = value
    return scores


def _described(path):
    kind, folders = kind_of_run(path), training_folders(path)
    records = [
        read_record(folder / "run.json") for folder in folders if (folder / "run.json").is_file()
    ]
    logs = [read_log(folder) for folder in folders]
    scores, metric = scores_of(path) if logs else {}, None
    shape = AlbertConfig.from_dict(records[0]["albert_config"]) if records else None
    if (path / "results.json").is_file():
        metric = read_results(path).metric
    else:
        candidates = (_PRETRAINING_SCORE, f"training {_PRETRAINING_SCORE}", *sorted(scores))
        metric = next((name for name in candidates if name in scores), None)
    return {
        "kind": kind,
        "model": shape and _name_of(shape),
        "shape": shape and model_line(shape),
        "step": max((log[-1]["step"] for log in logs if log), default=0),
        "steps": records[0]["config"]["training"].get("steps") if records else None,
        "metric": metric and metric.removeprefix("training "),
        "score": scores.get(metric),
        "is_held_out": metric is not None and not metric.startswith("training "),
        "seconds": sum(line["seconds"] for log in logs for line in log if "seconds" in line),
    }


def _name_of(shape):
    settings = shape.as_settings()
    return settings["size"] + ("*" if len(settings) > 1 else "")


def _size_and_time(path):
    size, changed = 0, path.lstat().st_mtime
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:  # a training removes old checkpoints
                continue
            size, changed = size + status.st_size, max(changed, status.st_mtime)
    return size, datetime.fromtimestamp(changed, timezone.utc).isoformat(timespec="seconds")
