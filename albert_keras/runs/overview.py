"""The runs of a folder, as a list. No TensorFlow."""

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
from data_pipeline.limits import reading_json
from data_pipeline.progress import parse_duration

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
    time_budget: float | None  # the seconds after which it ends
    is_finished: bool  # whether all its steps are done, or its time is used
    metric: str | None  # name of the score
    score: float | None
    is_held_out: bool  # whether the score is on data that was not trained on
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
    scores, model, training = run.scores(), None, {}
    if run.trainings:
        record = run.trainings[0].record
        settings = AlbertConfig.from_dict(record["albert_config"]).as_settings()
        model = settings["size"] + ("*" if len(settings) > 1 else "")
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
        model=model,
        step=step,
        steps=None if budget else steps,
        time_budget=parse_duration(budget) if budget else None,
        is_finished=is_done or run.result is not None,
        metric=metric and metric.removeprefix("training "),
        score=scores.get(metric),
        is_held_out=metric is not None and not metric.startswith("training "),
        seconds=sum(line.get("seconds", 0.0) for line in lines),
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


def _planned_steps(run):
    """Returns the steps that fit into the time of a run, as its newest checkpoint says, or None."""
    states = sorted(run.glob("checkpoints/step-*/state.json"))
    if not states:
        return None
    with reading_json(states[-1]) as values:
        budget = values["state"].get("budget")
        return budget and budget["num_steps"]
