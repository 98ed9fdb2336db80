"""The folder of an exported model: its names, versions and files, without TensorFlow."""

import os
import re
from pathlib import Path

from albert_keras.formats.detection import EXPORT_RECORD, convert_command, find, versions
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import read_json

#: What a user types for a masked token; only `fill_mask` reads it as more than text.
MASK_LITERAL = "[MASK]"
#: Candidates for each [MASK].
TOP_K = 10
#: File in the folder of a version with the shape of the model.
SHAPE_FILE = "albert_config.json"
#: What to do about a damaged version.
AFTER_DAMAGE = "Copy the version again from where it was exported, or export the model again."
#: Largest version that `tensorflow_model_server` reads: an int64.
MAX_VERSION = 2**63 - 1

_MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_model_name(name: str) -> str:
    """Returns the name of a model, a folder name and part of addresses; InputError for others."""
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise InputError(
            "The name of a model must have 1 to 64 characters of `a-z`, `0-9`, `_` and `-`, and "
            f"start with a letter or digit. Received: {name!r}."
        )
    return name


def check_version(version: int) -> int:
    """Returns a version, from 1 to the largest int64; raises InputError for others."""
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version <= MAX_VERSION:
        raise InputError(f"A version must be an int from 1 to 2^63 - 1. Received: {version!r}.")
    return version


def models_in(folder: str | Path) -> list[Path]:
    """Lists the exported models in a folder of models, by name; empty if there is none."""
    folder = Path(folder)
    return sorted(one for one in folder.iterdir() if versions(one)) if folder.is_dir() else []


def existing_versions(folder: str | Path) -> list[int]:
    """Lists the versions of an exported model as `versions` does; InputError if there is none."""
    found = versions(folder)
    if not found and (models := models_in(folder)):
        names = ", ".join(f"`{one}`" for one in models[:5])
        more = f" and {len(models) - 5} more" if len(models) > 5 else ""
        raise InputError(
            f"`{folder}` must be the folder of one exported model. It contains {len(models)}: "
            f"{names}{more}. Give one of them."
        )
    if not found and (Path(folder) / EXPORT_RECORD).is_file():
        raise InputError(f"`{Path(folder) / 'saved_model.pb'}` is missing. {AFTER_DAMAGE}")
    if not found:
        raise InputError(
            f"`{folder}` contains no exported model. Create one with `albert-keras export`."
            + _foreign_hint(Path(folder)),
            Mistake.NO_EXPORT,
        )
    return found


def _foreign_hint(folder):
    """Returns how a model of another program gets here, after a space; or nothing."""
    place = find(folder)
    if place is None or place.format == "albert-keras":
        return ""
    return f" It contains a model of {place.format}. Convert it: `{convert_command(folder)}`."


def version_folder(path: str | Path) -> Path:
    """Returns the folder of one version: `path`, or the newest version in a model's folder.

    A model may be given by the name of a shipped model, see `find_model`.
    """
    path = find_model(path)
    if (path / "saved_model.pb").is_file():
        return path
    return path / str(existing_versions(path)[-1])


def split_version(path: str | Path) -> tuple[Path, int | None]:
    """Returns the absolute folder of a model, and the version if `path` is the folder of one.

    A model may be given by the name of a shipped model, see `find_model`.

    Raises:
        InputError: If it contains a SavedModel but its name is not a version.
    """
    folder = Path(os.path.abspath(find_model(path)))  # gives `.` a name, and does not resolve links
    if not (folder / "saved_model.pb").is_file():
        return folder, None
    if not re.fullmatch(r"[1-9]\d*", folder.name, re.ASCII):
        raise InputError(
            "The folder of a SavedModel must have its version as its name, and be in a folder with "
            f"the name of the model, such as `books/1`. Received: `{path}`. Move it to "
            f"`{folder / '1'}`."
        )
    return folder.parent, check_version(int(folder.name))


def read_export_record(folder: Path) -> dict:
    """Reads `export.json` of a version; {} if there is none: a SavedModel may come without it."""
    path = folder / EXPORT_RECORD
    return read_json(path, AFTER_DAMAGE) if path.is_file() else {}


def size_of(folder: Path) -> int:
    """Returns the total size of all files of a version in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def keras_file(folder: Path) -> Path:
    """Returns the path of the Keras model of a version, `3.keras` beside the folder `3`."""
    return folder.with_name(f"{folder.name}.keras")
