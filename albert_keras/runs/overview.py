"""The runs of a folder: listed and compared. No TensorFlow."""

import logging
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import Place, find_ours
from albert_keras.models.weight_count import model_line
from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run_record import flat_values, read_record, with_defaults
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.results import FinetuneResult, best_seed, first_split, read_results
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import reading_json
from data_pipeline.progress import parse_duration

logger = logging.getLogger(__name__)

#: Functions that return the default settings, by kind of run.
DEFAULTS = {"pretraining": PretrainingConfig.defaults, "finetuning": FinetuneConfig.defaults}
#: The score that a pre-training is listed with.
_PRETRAINING_SCORE = "masked_lm_accuracy"
#: Parts of `run.json` that describe what was trained.
_PARTS = ("config", "albert_config", "data", "tokenizer_digest")
_MODEL, _SHAPE = "config.model.", "albert_config."


class RunSummary(NamedTuple):
    """A run in a list."""

    path: str
    kind: str  # "pretraining" or "finetuning"
    model: str | None  # the nearest named model, with "*" if its shape differs
    shape: str | None  # the line that says what the model is
    step: int  # the last step in the log
    steps: int | None  # the steps of a complete run; None if it ends by its time
    time_budget: float | None  # the seconds after which it ends
    is_finished: bool  # whether all its steps are done, or its time is used
    metric: str | None  # name of the score
    score: float | None
    is_held_out: bool  # whether the score is on data that was not trained on
    seconds: float  # time of training, without start-up
    bytes: int  # size on disk
    changed: str  # when a file was last written, ISO 8601 in UTC


class Comparison(NamedTuple):
    """Several runs next to each other; the values are in the order of `runs`."""

    runs: list[str]
    settings: dict[str, list[Any]]  # only those that differ; None where a run has none
    scores: dict[str, list[float | None]]  # all scores that any of them has


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

    def scores(self) -> dict[str, float]:
        """Returns the final scores by name; names of training scores begin with "training".

        A fine-tuning has the scores of its best seed on the first split.
        """
        if self.result is not None:
            return dict(best_seed(self.result).scores[first_split(self.result)])
        log, evaluations = self.trainings[0][2:] if self.trainings else ([], [])
        names = ("loss", "masked_lm_loss", _PRETRAINING_SCORE, "sentence_order_accuracy")
        scores = {f"training {name}": log[-1][name] for name in names if log and name in log[-1]}
        for name, value in evaluations[-1][1].items() if evaluations else ():
            if isinstance(value, float):
                scores[name] = value
        return scores


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
    (size, changed), scores = _size_and_time(run.path), run.scores()
    shape, settings, training = None, None, {}
    if run.trainings:
        record = run.trainings[0].record
        shape = AlbertConfig.from_dict(record["albert_config"])
        settings = shape.as_settings()
        training = record["config"]["training"]
    if run.result is not None:
        metric = run.result.metric
    else:
        candidates = (_PRETRAINING_SCORE, f"training {_PRETRAINING_SCORE}", *sorted(scores))
        metric = next((name for name in candidates if name in scores), None)
    budget, steps = training.get("time_budget"), training.get("steps")
    step = max((one.log[-1]["step"] for one in run.trainings if one.log), default=0)
    if budget is not None:  # the steps of the settings end no run with a budget
        steps = _planned_steps(run.trainings[0].path)
    is_done = run.kind == "pretraining" and steps is not None and step >= steps
    lines = [line for one in run.trainings for line in one.log]
    return RunSummary(
        path=str(run.path),
        kind=run.kind,
        model=settings and settings["size"] + "*" * (len(settings) > 1),
        shape=shape and model_line(shape),
        step=step,
        steps=None if budget else steps,
        time_budget=parse_duration(budget) if budget else None,
        is_finished=is_done or run.result is not None,
        metric=metric and metric.removeprefix("training "),
        score=scores.get(metric),
        is_held_out=metric is not None and not metric.startswith("training "),
        seconds=sum(line.get("seconds", 0.0) for line in lines),
        bytes=size,
        changed=changed,
    )


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


def compare_runs(paths: Sequence[str | Path]) -> Comparison:
    """Compares two or more runs; of a fine-tuning with several seeds the first is compared.

    Raises:
        InputError: If there are fewer than two, or one is not a run or is damaged.
    """
    folders = list(dict.fromkeys(Path(path) for path in paths))
    if len(folders) < 2:
        raise InputError(f"Two or more different runs must be given. Received: {len(folders)}.")
    runs = list(map(read_run, folders))
    return Comparison(
        runs=list(map(str, folders)),
        settings={
            name: values
            for name, values in _side_by_side(list(map(_settings_of, runs))).items()
            if any(value != values[0] for value in values)
        },
        scores=_side_by_side([run.scores() for run in runs]),
    )


def _side_by_side(values):
    names = dict.fromkeys(name for one in values for name in one)
    return {name: [one.get(name) for one in values] for name in names}


def _settings_of(run):
    if not run.trainings:
        return {}
    record = run.trainings[0].record
    record = with_defaults(record, DEFAULTS[record.get("kind", "pretraining")]())
    values = flat_values({part: record.get(part) for part in _PARTS})
    # What a run changed in a named model is in the shape of its model again.
    for key in list(values):
        if key.startswith(_MODEL) and _SHAPE + key.removeprefix(_MODEL) in values:
            del values[key]
    return values


def _planned_steps(run):
    """Returns the steps that fit into the time of a run, as its newest checkpoint says, or None."""
    states = sorted(run.glob("checkpoints/step-*/state.json"))
    if not states:
        return None
    with reading_json(states[-1]) as values:
        budget = values["state"].get("budget")
        return budget and budget["num_steps"]


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
