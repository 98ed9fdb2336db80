"""The folder of an exported model: its names, versions and files, without TensorFlow."""

import json
import re
from pathlib import Path

from data_pipeline.errors import InputError

#: What a user types for a masked token; only `fill_mask` reads it as more than text.
MASK_LITERAL = "[MASK]"
#: Candidates for each [MASK].
TOP_K = 10
#: File in the folder of a version that describes the model and its training.
EXPORT_RECORD = "export.json"
#: Largest version that `tensorflow_model_server` reads: an int64.
MAX_VERSION = 2**63 - 1

_MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9_]{1,64}")


def check_model_name(name):
    """Returns the name of a model, which is a folder name and part of addresses.

    Args:
        name: str.

    Raises:
        InputError: If it has other characters, starts with `-` or `_`, or is too long.
    """
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise InputError(
            "The name of a model must have 1 to 64 characters of `a-z`, `0-9`, `_` and `-`, and "
            f"start with a letter or digit. Received: {name!r}."
        )
    return name


def check_version(version):
    """Returns a version: an int from 1 to the largest int64; raises InputError for others."""
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version <= MAX_VERSION:
        raise InputError(f"A version must be an int from 1 to 2^63 - 1. Received: {version!r}.")
    return version


def check_label(label):
    """Returns the label of a version: 1 to 64 letters, digits and `_`; InputError for others."""
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise InputError(
            "The label of a version must have 1 to 64 characters of `A-Z`, `a-z`, `0-9` and `_`. "
            f"Received: {label!r}."
        )
    return label


def versions(folder):
    """Lists the versions of an exported model in ascending order.

    Args:
        folder: str or Path. Folder of the model; `tensorflow_model_server`'s base path.

    Returns:
        list of int.
    """
    folder = Path(folder)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    # A set: a listing may contain a name twice while another process writes there.
    numbers = {int(name) for name in names if re.fullmatch(r"[1-9]\d*", name, re.ASCII)}
    return sorted(number for number in numbers if number <= MAX_VERSION)


def existing_versions(folder):
    """Lists the versions of an exported model as `versions` does; InputError if there is none."""
    found = versions(folder)
    if not found:
        raise InputError(
            f"`{folder}` contains no exported model. Create one with `albert-keras export`."
        )
    return found


def version_folder(path):
    """Returns the folder of one version.

    Args:
        path: str or Path. Such a folder, or the folder of a model, which means its newest version.

    Returns:
        Path.

    Raises:
        InputError: If there is no export.
    """
    path = Path(path)
    if (path / "saved_model.pb").is_file():
        return path
    return path / str(existing_versions(path)[-1])


def read_export_record(folder):
    """Reads `export.json`, the description of an exported version.

    Args:
        folder: str or Path. Folder of the version.

    Returns:
        dict. Empty if the file does not exist: a SavedModel may come without it.

    Raises:
        InputError: If the file is damaged.
    """
    path = Path(folder) / EXPORT_RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is damaged: {error}.") from error
    if not isinstance(record, dict):
        raise InputError(f"`{path}` is damaged: it must contain a JSON object.")
    return record


def size_of(folder):
    """Returns the total size of all files of a version in bytes, int."""
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def keras_file(folder):
    """Returns the path of the Keras model of a version, `3.keras` beside the folder `3`.

    Args:
        folder: str or Path. Folder of the version.
    """
    folder = Path(folder)
    return folder.with_name(f"{folder.name}.keras")
