"""Recipes: complete configurations for `albert-keras pretrain --config NAME`, a YAML file each."""

from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

_FOLDER = Path(__file__).parent


def names():
    """Returns the names of all recipes, sorted (tuple of str)."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.yaml")))


def path(name):
    """Returns the file of a recipe (Path).

    Args:
        name: str. One of `names()`.

    Raises:
        InputError: If the name is not known.
    """
    if name not in names():
        raise InputError(f"`{name}` is not a recipe{did_you_mean(name, names())}")
    return _FOLDER / f"{name}.yaml"
