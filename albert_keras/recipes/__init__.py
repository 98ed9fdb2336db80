"""Recipes: complete configurations, a YAML file each.

`albert-keras pretrain --config NAME` and `distill` use a recipe of this folder, and `albert-keras
finetune` one of `finetuning/`, named after the task.
"""

from pathlib import Path

import yaml

from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import did_you_mean

_FOLDERS = {
    "pretraining": Path(__file__).parent,
    "finetuning": Path(__file__).parent / "finetuning",
}

#: Kinds of recipes.
KINDS = tuple(_FOLDERS)


def names(kind="pretraining"):
    """Returns the names of all recipes of a kind (one of `KINDS`), sorted (tuple of str)."""
    if kind not in _FOLDERS:
        raise InputError(f"`{kind}` is not a kind of recipe{did_you_mean(kind, KINDS)}")
    return tuple(sorted(_files(kind)))


def path(name, kind="pretraining"):
    """Returns the file of a recipe (Path); raises InputError if there is no such recipe."""
    known = names(kind)
    if name not in known:
        hint = did_you_mean(name, known)
        if hint.endswith("?"):
            hint += f" Recipes: {', '.join(known)}."
        raise InputError(
            f"`{name}` is neither a configuration file nor the name of a recipe{hint}",
            Mistake.NO_CONFIG_FILE,
        )
    return _files(kind)[name]


def values(name, kind="pretraining"):
    """Returns the values of a recipe's file, nested dict."""
    return yaml.safe_load(path(name, kind).read_text(encoding="utf-8"))


def _files(kind):
    return {file.stem: file for file in _FOLDERS[kind].glob("*.yaml")}
