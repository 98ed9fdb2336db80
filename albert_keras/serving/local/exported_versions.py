"""What is to be served: which versions, by what names, for which tasks; nothing is loaded here."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.export_record import EXPORT_RECORD, read_export_record
from albert_keras.serving.layout import existing_versions
from albert_keras.serving.names import check_model_name, check_version
from data_pipeline.errors import InputError

_TASK = {"name": str, "kind": str, "labels": list, "takes_pair": bool}


class ExportedVersion(NamedTuple):
    """A version on disk: `name` str of the model, `version` int, `folder` Path."""

    name: str
    version: int
    folder: Path


def find_exports(models):
    """Finds what is to be served.

    Args:
        models: iterable of str or Path. Each the folder of a name, of which the newest version is
            taken, or that of one version.

    Returns:
        list of ExportedVersion.

    Raises:
        InputError: If there is no export, a name cannot stand in an address, or two are equal.
    """
    found = []
    for path in models:
        export = _find_export(path)
        for other in found:
            if other.name == export.name:
                raise InputError(
                    f"Two models should not have one name. Received: `{other.folder}` and "
                    f"`{export.folder}`. Copy one of them to a folder of another name."
                )
        found.append(export)
    if not found:
        raise InputError("There should be at least one model to serve. Received: none.")
    return found


def _find_export(path):
    folder = Path(os.path.abspath(path))  # `.` has no name; links keep theirs
    if not (folder / "saved_model.pb").is_file():
        folder = folder / str(existing_versions(path)[-1])
    elif not re.fullmatch(r"[1-9]\d*", folder.name, re.ASCII):
        raise InputError(
            "The folder of a SavedModel should be named by its version, in a folder named as the "
            f"model, such as `books/1`. Received: `{path}`. Move it to `{folder / '1'}`."
        )
    name = folder.parent.name
    try:
        check_model_name(name)
        version = check_version(int(folder.name))
    except InputError as error:
        raise InputError(f"{error} Rename the folder of `{path}`.") from error
    return ExportedVersion(name, version, folder)


def read_task(folder):
    """Reads what an export is for.

    Args:
        folder: Path. Of the version.

    Returns:
        (kind, task). "pretraining", "finetuning" or None where `export.json` does not tell; and a
        dict of "name", "kind" (a name in `tasks.kinds.KINDS`), "labels" and "takes_pair", or None.

    Raises:
        InputError: If `export.json` is damaged.
    """
    record = read_export_record(folder)
    kind, task = record.get("kind"), record.get("task")
    if task is not None and not _is_task(task):
        raise InputError(
            f"`task` in `{Path(folder) / EXPORT_RECORD}` should have {', '.join(_TASK)}. "
            f"Received: {str(task)[:100]}."
        )
    return (
        kind if isinstance(kind, str) else None,
        task and {name: task[name] for name in _TASK},
    )


def _is_task(task):
    return isinstance(task, dict) and all(
        isinstance(task.get(name), expected) for name, expected in _TASK.items()
    )
