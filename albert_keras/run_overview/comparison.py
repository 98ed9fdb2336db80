"""The settings in which runs differ, and their final scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.run_overview.summary import NotARun, first_training, scores_of
from albert_keras.runs.kind import kind_of_run
from albert_keras.runs.run_record import flat_values, read_record, with_defaults
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError

#: Parts of `run.json` that describe what was trained.
_PARTS = ("config", "albert_config", "data", "tokenizer_digest")
_MODEL, _SHAPE = "config.model.", "albert_config."
#: Functions that return the default settings, by kind of run.
DEFAULTS = {"pretraining": PretrainingConfig.defaults, "finetuning": FinetuneConfig.defaults}


class Comparison(NamedTuple):
    """Several runs next to each other; the values are in the order of `runs`."""

    runs: list[str]
    settings: dict[str, list[Any]]  # only those that differ; None where a run has none
    scores: dict[str, list[float | None]]  # all scores that any of them has


def compare_runs(paths: Sequence[str | Path]) -> Comparison:
    """Compares two or more runs; of a fine-tuning with several seeds the first is compared.

    Raises:
        InputError: If there are fewer than two, or one is not a run or is damaged.
    """
    paths = check_runs(paths)
    settings = [_settings_of(path) for path in paths]
    names = dict.fromkeys(name for values in settings for name in values)
    table = {name: [values.get(name) for values in settings] for name in names}
    differing = {
        name: values
        for name, values in table.items()
        if any(value != values[0] for value in values)
    }
    scores = [scores_of(path) for path in paths]
    metrics = dict.fromkeys(name for values in scores for name in values)
    return Comparison(
        runs=[str(path) for path in paths],
        settings=differing,
        scores={name: [values.get(name) for values in scores] for name in metrics},
    )


def check_runs(paths: Sequence[str | Path]) -> list[Path]:
    """Returns the folders of two or more different runs, or raises InputError."""
    folders = list(dict.fromkeys(Path(path) for path in paths))
    if len(folders) < 2:
        raise InputError(f"Two or more different runs must be given. Received: {len(folders)}.")
    for folder in folders:
        if kind_of_run(folder) is None:
            raise NotARun(folder)
    return folders


def _settings_of(path):
    record_file = first_training(path) / "run.json"
    if not record_file.is_file():
        return {}
    record = read_record(record_file)
    record = with_defaults(record, DEFAULTS[record.get("kind", "pretraining")]())
    values = flat_values({part: record.get(part) for part in _PARTS})
    # What a run changed in a named model is in the shape of its model again.
    for key in list(values):
        if key.startswith(_MODEL) and _SHAPE + key.removeprefix(_MODEL) in values:
            del values[key]
    return values
