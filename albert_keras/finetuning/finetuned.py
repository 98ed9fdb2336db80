"""Fine-tuned models that answer: one, or several whose predictions are averaged."""

import collections
import json
from pathlib import Path

from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.predicting import RowPredictor
from albert_keras.finetuning.results import best_seed, read_results
from albert_keras.runs.run import Run
from albert_keras.tasks.build import build_task
from albert_keras.tasks.kinds import TAGGING
from albert_keras.training.distributed.strategy import build_strategy
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file

_TUNED, _RECORD, _RESULTS = "tuned.json", "run.json", "results.json"


def save_tuned(run, tuned):
    """Keeps what `Task.tune` found (dict) in the folder of a run."""
    with whole_file(run.path / _TUNED) as temporary:
        temporary.write_text(json.dumps(tuned) + "\n", encoding="utf-8")


def is_finetuned(path):
    """Tells whether a folder holds a fine-tuning, or one of its runs (bool)."""
    path = Path(path)
    if (path / _RECORD).is_file():
        return Run.open(path).kind == "finetuning"
    return (path / _RESULTS).is_file() or any(path.glob(f"seed-*/{_RECORD}"))


def find_runs(path, all_seeds=False):
    """Finds the runs that are meant by a folder.

    Args:
        path: str or Path. Folder of a run, or of a fine-tuning.
        all_seeds: bool. Whether a fine-tuning means all its seeds; else it means the best one.

    Returns:
        list of Path.

    Raises:
        InputError: If there is no fine-tuned run, or the fine-tuning has not come to its end.
    """
    path = Path(path)
    if (path / _RECORD).is_file():
        kind = Run.open(path).kind
        if kind != "finetuning":
            raise InputError(
                f"`{path}` should be a fine-tuned run. Received: one of {kind}. Make one with "
                "`albert-keras finetune`."
            )
        return [path]
    if not (path / _RESULTS).is_file():
        begun = sorted(path.glob(f"seed-*/{_RECORD}"))
        if begun:
            raise InputError(
                f"`{path}` should be a fine-tuning that came to its end: it has no {_RESULTS}. "
                f"Give its command again to go on with it, or take a run in it: {begun[0].parent}."
            )
        raise InputError(
            f"`{path}` should be the folder of a fine-tuning: it has no {_RESULTS}. Make one "
            "with `albert-keras finetune --out`."
        )
    result = read_results(path)
    runs = [path / seed.path for seed in (result.seeds if all_seeds else [best_seed(result)])]
    for run in runs:
        if not (run / _RECORD).is_file():
            raise InputError(
                f"`{path}` is not whole: its {_RESULTS} names the run `{run.name}`, in which "
                f"there is no {_RECORD}."
            )
    return runs


def check_answers_folder(out):
    """Makes sure, before any model answers, that a folder is there or can be made.

    Args:
        out: str, Path or None. None wants nothing to be written.

    Raises:
        InputError: If it cannot be made.
    """
    if out is not None and not Path(out).is_dir():
        check_output_folder(out)


class FinetunedModels:
    """Models of one task with one tokenizer; the predictions of several are averaged.

    Args:
        paths: str, Path or sequence of them. Folders of runs or of fine-tunings.
        all_seeds: bool. As in `find_runs`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        strategy: str. See `strategy.py`.
        batch_size: int. Rows a device computes at a time.
        changes: dict of str. Settings of the task that differ from those in training: `data_dir`,
            and columns `text` and `pair` where there were such; None means as it was.

    Attributes:
        runs: list of Run.
        task: Task.
        tokenizer: Tokenizer.
        tuned: dict of str to float. Means of what `Task.tune` found for each.

    Raises:
        InputError: If there is none, it is damaged, or they do not go together.
    """

    def __init__(
        self, paths, all_seeds=False, step="best", strategy="auto", batch_size=64, **changes
    ):
        if batch_size < 1:
            raise InputError(f"`batch_size` should be 1 or more. Received: {batch_size}.")
        paths = [paths] if isinstance(paths, str | Path) else list(paths)
        self.runs = [Run.open(run) for path in paths for run in find_runs(path, all_seeds)]
        if not self.runs:
            raise InputError("There should be at least one fine-tuned run. Received: none.")
        configs = [_config_of(run) for run in self.runs]
        _check_alike(self.runs, configs)
        changes = {name: value for name, value in changes.items() if value is not None}
        _check_columns(configs[0].task, changes)
        self.task = build_task(configs[0].task.replace(**changes))
        self.tokenizer = self.runs[0].tokenizer
        strategy = build_strategy(strategy)
        self._predictors = []
        for run in self.runs:
            with strategy.scope():
                model = run.load_model(step, task=self.task)
            self._predictors.append(RowPredictor(strategy, model, self.task.kind, batch_size))
        self.tuned = _mean([read_tuned(run) for run in self.runs])

    def examples(self, inputs):
        """Makes examples of what somebody asks.

        Args:
            inputs: list of dict of str, see `Task.example`; or of str, which are texts. A dict may
                have an "id", which the answer gets; else it is the number in the list.

        Returns:
            list, as `Task.read` returns.

        Raises:
            InputError: If one of them is nothing that this task can be asked, or two have one id.
        """
        return typed_examples(self.task, inputs)

    def outputs(self, examples, cache=None):
        """Lets all models look at examples.

        Args:
            examples: list, as `Task.read` returns.
            cache: Path or None. Folder of features.

        Returns:
            tuple. Features, and a list of dicts of arrays, one per model.
        """
        features = self.task.features(examples, self.tokenizer, cache=cache)
        return features, [predictor.predict(features) for predictor in self._predictors]

    def answers(self, examples):
        """Answers examples: list of named tuples, see `Task.answers`."""
        features, results = self.outputs(examples)
        return self.task.answers(examples, features, results, self.tuned or None)


def typed_examples(task, inputs):
    """Makes examples of what somebody asks; see `FinetunedModels.examples`.

    Args:
        task: Task.
        inputs: list of dict of str, or of str.
    """
    examples = []
    for number, fields in enumerate(inputs):
        fields = {"text": fields} if isinstance(fields, str) else fields
        try:
            examples.append(_example(task, number, fields))
        except InputError as error:
            place = f"Input {number + 1} of {len(inputs)}: " if len(inputs) > 1 else ""
            raise InputError(f"{place}{error}") from error
    ids = collections.Counter(example.id for example in examples)
    twice = [id for id, count in ids.items() if count > 1]
    if twice:
        raise InputError(f"Inputs should have different ids. Received twice: {twice[0]!r}.")
    return examples


def _example(task, number, fields):
    """Makes an example of a dict of fields, with the id that may be among them."""
    if not isinstance(fields, dict):
        raise InputError(f"What is asked should be texts by name. Received: {fields!r}.")
    fields = dict(fields)
    id = fields.pop("id", number)
    if not isinstance(id, str | int):
        raise InputError(f"`id` should be a text or a number. Received: {id!r}.")
    for name, value in fields.items():
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"`{name}` should be Unicode. It has half a surrogate pair.")
    return task.example(id, fields)


def _check_columns(task, changes):
    """Refuses columns of a file that the task did not have in training."""
    for name in ("text", "pair"):
        is_usual = task.name in TAGGING.own_tasks and name == "text"  # without it the first column
        if name in changes and getattr(task, name) is None and not is_usual:
            raise InputError(
                f"The column of `{name}` should be left out: {task.name} had none in training. "
                f"Received: {changes[name]}."
            )


def _config_of(run):
    config = run.record["config"]
    return FinetuneConfig(**{name: config[name] for name in ("task", "model", "training")})


def _check_alike(runs, configs):
    """Refuses to average what belongs to different tasks."""
    files = ("data_dir", "train", "dev", "text", "pair", "label", "dev_share")
    first = {"tokenizer": runs[0].record["tokenizer_digest"][:8]} | _alike(configs[0], files)
    for run, config in zip(runs[1:], configs[1:], strict=True):
        other = {"tokenizer": run.record["tokenizer_digest"][:8]} | _alike(config, files)
        for name, value in first.items():
            if other[name] != value:
                raise InputError(
                    "Runs whose predictions are averaged should be of one task. "
                    f"`{name}` of `{runs[0].path}` is {value!r}, of `{run.path}` {other[name]!r}."
                )


def _alike(config, files):
    return config.task.model_dump(mode="json", exclude=set(files))


def read_tuned(run):
    """Returns what `save_tuned` kept in the folder of a run (dict), empty if there is nothing."""
    path = run.path / _TUNED
    if not path.is_file():
        return {}
    try:
        return {name: float(value) for name, value in json.loads(path.read_bytes()).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"`{path}` is damaged: {error}.") from error


def _mean(found):
    names = set.intersection(*map(set, found))
    return {name: sum(each[name] for each in found) / len(found) for name in sorted(names)}
