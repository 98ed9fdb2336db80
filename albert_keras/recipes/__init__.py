"""Recipes: complete configurations, a YAML file each.

`albert-keras pretrain --config NAME` takes those of this folder, `albert-keras finetune` those of
`finetuning/`, by the name of the task.
"""

from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

_FOLDER = Path(__file__).parent
_FOLDERS = {"pretraining": _FOLDER, "finetuning": _FOLDER / "finetuning"}

#: What a recipe may be for.
KINDS = tuple(_FOLDERS)


def names(kind="pretraining"):
    """Returns the names of all recipes of a kind, sorted (tuple of str).

    Args:
        kind: str. One of `KINDS`.

    Raises:
        InputError: If the kind is not known.
    """
    return tuple(sorted(file.stem for file in _folder(kind).glob("*.yaml")))


def path(name, kind="pretraining"):
    """Returns the file of a recipe (Path).

    Args:
        name: str. One of `names(kind)`.
        kind: str. One of `KINDS`.

    Raises:
        InputError: If the name or the kind is not known.
    """
    known = names(kind)
    if name not in known:
        raise InputError(f"`{name}` is not a recipe for {kind}{did_you_mean(name, known)}")
    return _folder(kind) / f"{name}.yaml"


def _folder(kind):
    if kind not in _FOLDERS:
        raise InputError(f"`{kind}` is not a kind of recipe{did_you_mean(kind, KINDS)}")
    return _FOLDERS[kind]
