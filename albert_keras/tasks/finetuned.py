"""Fine-tuned models that answer: one, or several whose predictions are averaged."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from albert_keras.formats.detection import best_run, detect, kind_of_run
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.given import typed_examples
from albert_keras.tasks.kinds import SIMILARITY, TAGGING, build_task
from albert_keras.tasks.results import read_results
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.task import Features, Task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.strategy import build_strategy, describe_devices
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import write_json
from data_pipeline.limits import reading_json

logger = logging.getLogger(__name__)

_TUNED = "tuned.json"
#: Settings that models may differ in when their predictions are averaged: files, and how an example
#: is read.
_FILE_SETTINGS = {"data_dir", "train", "dev", "text", "pair", "label", "dev_share"}
_FILE_SETTINGS |= {"delimiter", "encoding", "skip_bad_rows", "objective"}


def is_converted(run: Run) -> bool:
    """Returns whether a fine-tuned run was converted from another format: it has no examples."""
    return run.record["data"].get("fingerprint") == CONVERTED


def save_tuned(run: Run, tuned: dict[str, float]):
    """Saves the result of `Task.tune` in the folder of a run."""
    write_json(run.path / _TUNED, tuned, indent=None)


def read_tuned(run: Run) -> dict[str, float]:
    """Returns what `save_tuned` saved in the folder of a run, or an empty dict."""
    path = run.path / _TUNED
    if not path.is_file():
        return {}
    with reading_json(path) as values:
        return {name: float(value) for name, value in values.items()}


def is_finetuned(path: str | Path) -> bool:
    """Returns whether a folder contains a fine-tuning, or is one of its runs."""
    return kind_of_run(Path(path)) == "finetuning"


def find_runs(path: str | Path, all_seeds: bool = False) -> list[Path]:
    """Finds the run in a folder, or in the folder of a fine-tuning its best run or all seeds.

    Raises:
        InputError: If there is no fine-tuned run, or the fine-tuning is not complete.
    """
    wanted = (
        "It must be a fine-tuned run, or the folder of a fine-tuning. Create one with "
        "`albert-keras finetune --out`."
    )
    place = detect(path, ("run", "fine-tuning"), wanted)
    if place.kind == "fine-tuning":
        best = best_run(place.path)
        if not all_seeds:
            return [best]
        return [place.path / seed.path for seed in read_results(place.path).seeds]
    kind = kind_of_run(place.path)
    if kind != "finetuning":
        raise InputError(
            f"`{path}` must be a fine-tuned run. Received: a run of {kind}. Fine-tune it with "
            "`albert-keras finetune`; or, to fill masks, export it with `albert-keras export` "
            "and use the export.",
            Mistake.NOT_FINETUNED,
        )
    return [place.path]


def task_of(path: str | Path) -> Task:
    """Returns the task of a fine-tuned run, without the files of its training."""
    config = _config_of(Run.open(path)).task
    return build_task(config.replace(train=None, dev=None, data_dir=None))


def open_finetuned(
    path: str | Path, step: int | str | None = "best", precision: str | None = None
) -> Any:
    """Returns a fine-tuned model, an AlbertTaskModel, with its task and its tokenizer.

    Args:
        path: Folder of a fine-tuning or of one of its runs, see `find_runs`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        precision: See `Run.load_model`.
    """
    run = Run.open(find_runs(path)[0])
    task = task_of(run.path)
    model = run.load_model(step, precision, task=task)
    model.task, model.tokenizer = task, run.tokenizer
    model.tuned = read_tuned(run)
    return model


class FinetunedModels:
    """Models of one task; the predictions of several are averaged.

    They may differ in kind and size, but not in task, labels, tokenizer and lengths.

    Args:
        paths: str, Path or sequence of them. Folders of runs or of fine-tunings.
        all_seeds: bool. As in `find_runs`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        strategy: str. See `strategy.py`.
        batch_size: int. Rows per device and call.
        changes: dict of str. Settings of the task that differ from the training: `data_dir`, how
            tables are written (`delimiter`, `encoding`, `skip_bad_rows`), and the columns `text`
            and `pair` if the task had them in training; None for no change.

    Attributes:
        runs: list of Run.
        task: Task. Of the first run.
        tokenizer: Tokenizer. Of the first run.
        tuned: dict of str to float. Means of what `Task.tune` found for each.

    Raises:
        InputError: If there is none, it is damaged, or they do not fit together.

    Example:
        models = FinetunedModels("runs/sst-2")
        models.answers(models.examples(["a gripping, funny film"]))[0].label
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        all_seeds: bool = False,
        step: int | str | None = "best",
        strategy: str = "auto",
        batch_size: int = 64,
        **changes: Any,
    ):
        if batch_size < 1:
            raise InputError(f"`batch_size` must be at least 1. Received: {batch_size}.")
        paths = [paths] if isinstance(paths, str | Path) else list(paths)
        self.runs = [Run.open(run) for path in paths for run in find_runs(path, all_seeds)]
        if not self.runs:
            raise InputError("There must be at least one fine-tuned run. Received: none.")
        configs = [_config_of(run) for run in self.runs]
        _check_alike(self.runs, configs)
        changes = {name: value for name, value in changes.items() if value is not None}
        check_columns(configs[0].task, changes)
        self.task = build_task(configs[0].task.replace(**changes))
        self.tokenizer = self.runs[0].tokenizer
        built_strategy = build_strategy(strategy)
        logger.info("predicting on %s", describe_devices(built_strategy))
        self._predictors = []
        #: The task as the first model was trained on it, perhaps with its files in another folder.
        moved = {name: value for name, value in changes.items() if name == "data_dir"}
        self.trained_task = build_task(configs[0].task.replace(**moved))
        for run, config in zip(self.runs, configs, strict=True):
            with built_strategy.scope():
                model = run.load_model(step, task=build_task(config.task))
            self._predictors.append(RowPredictor(built_strategy, model, self.task.kind, batch_size))
        tuned = [read_tuned(run) for run in self.runs]
        names = set.intersection(*map(set, tuned))
        self.tuned = {
            name: sum(each[name] for each in tuned) / len(tuned) for name in sorted(names)
        }

    def examples(self, inputs: list[dict | str]) -> list:
        """Returns examples made from a user's inputs.

        Args:
            inputs: list of dict of str, see `Task.example`; or of str, which are texts. A dict may
                have an "id" for its answer; otherwise it is the number in the list.

        Returns:
            list, as returned by `Task.read`.

        Raises:
            InputError: If an input does not suit the task, or two have the same id.
        """
        return typed_examples(self.task, inputs)

    def outputs(self, examples: list) -> tuple[Features, list]:
        """Computes the outputs of all models.

        Args:
            examples: list, as returned by `Task.read`.

        Returns:
            tuple. Features; and a list of dicts of arrays, one per model.
        """
        features = self.task.features(examples, self.tokenizer)
        return features, [predictor.predict(features) for predictor in self._predictors]

    def answers(self, examples: list) -> list:
        """Answers examples: list of named tuples, see `Task.answers`."""
        features, results = self.outputs(examples)
        return self.task.answers(examples, features, results, self.tuned or None)


def check_columns(task: TaskConfig, changes: dict[str, Any]):
    """Raises InputError for columns of a file that the task did not have in training."""
    for name in ("text", "pair"):
        has_default = task.name in TAGGING.own_tasks and name == "text"  # the first column
        # A model for similarity may have been trained on STS-B.
        has_default = has_default or task.name in SIMILARITY.own_tasks
        if name in changes and getattr(task, name) is None and not has_default:
            raise InputError(
                f"The column of `{name}` must not be given: {task.name} had none in training. "
                f"Received: {changes[name]}."
            )


def _config_of(run):
    config = run.record["config"]
    return FinetuneConfig(**{name: config[name] for name in ("task", "model", "training")})


def _check_alike(runs, configs):
    """Refuses to average the predictions of models that read different tasks or tokens."""
    excluded = {*_FILE_SETTINGS, "pooling", "pair_encoding"}
    settings = [
        {"tokenizer": run.record["tokenizer_digest"]}
        | config.task.model_dump(mode="json", exclude=excluded)
        for run, config in zip(runs, configs, strict=True)
    ]
    for run, other in zip(runs[1:], settings[1:], strict=True):
        for name, value in settings[0].items():
            if other[name] != value:
                raise InputError(
                    "Runs whose predictions are averaged must have the same task and tokenizer. "
                    f"Received: `{name}` is {value!r} in `{runs[0].path}`, but {other[name]!r} in "
                    f"`{run.path}`."
                )
