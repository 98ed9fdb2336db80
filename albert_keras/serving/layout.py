"""The folder of an exported model: its names, versions and files, without TensorFlow.

A version appears completely or not at all.
"""

import contextlib
import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from albert_keras.formats.detection import keras_file, version_folder
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError
from data_pipeline.files import fsync, remove_unfinished, whole_folder

#: What a user types for a masked token; only `fill_mask` reads it as more than text.
MASK_LITERAL = "[MASK]"
#: Candidates for each [MASK].
TOP_K = 10

#: The number of a version, of its `keras_file`, or of a version that is being written.
_NUMBERED = re.compile(r"(?:\.|model-)?(\d+)", re.ASCII)
_MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_model_name(name: str) -> str:
    """Returns the name of a model, a folder name and part of addresses; InputError for others."""
    if not _MODEL_NAME.fullmatch(name):
        raise InputError(
            "The name of a model must have 1 to 64 characters of `a-z`, `0-9`, `_` and `-`, and "
            f"start with a letter or digit. Received: {name!r}."
        )
    return name


def split_version(path: str | Path) -> tuple[Path, int | None]:
    """Returns the absolute folder of a model, and the version if `path` is the folder of one.

    It may be the name of a shipped model.

    Raises:
        InputError: If there is no export, or one version whose name is not a number.
    """
    version = os.path.abspath(version_folder(path))
    folder = Path(os.path.abspath(find_model(path)))  # gives `.` a name, and does not resolve links
    if version != str(folder):
        return folder, None
    if not re.fullmatch(r"[1-9]\d*", folder.name, re.ASCII):
        raise InputError(
            "The folder of a SavedModel must have its version as its name, and be in a folder with "
            f"the name of the model, such as `books/1`. Received: `{path}`. Move it to "
            f"`{folder / '1'}`."
        )
    return folder.parent, int(folder.name)


def size_of(folder: Path) -> int:
    """Returns the total size of all files of a version in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


class Draft(NamedTuple):
    """A version that is not published yet."""

    version: int  #: The number it will have.
    folder: Path  #: Empty folder to write the version into.
    keras_file: Path  #: Where the model for Keras may be written, in this folder until the end.


@contextlib.contextmanager
def new_version(out: Path) -> Generator[Draft, None, None]:
    """Yields a Draft: a version that gets the number after the largest one if the block succeeds.

    Servers ignore its folder until then, as its name is not a number. If the block fails, nothing
    remains.

    Args:
        out: Folder of the model; `tensorflow_model_server`'s base path.
    """
    remove_unfinished(out, "[1-9]*")  # what killed exports left
    names = [path.name for path in out.iterdir()] if out.is_dir() else []
    taken = [int(found[1]) for name in names if (found := _NUMBERED.match(name))]
    target = out / str(1 + max(taken, default=0))
    with whole_folder(target) as folder:
        model = folder / "model.keras"
        yield Draft(int(target.name), folder, model)
        if model.exists():
            fsync(model)
            os.replace(model, keras_file(target))
