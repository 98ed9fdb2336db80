"""The exports to serve: which versions, by what names, for which tasks. Nothing is loaded here."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.layout import (
    EXPORT_RECORD,
    check_model_name,
    check_version,
    existing_versions,
    read_export_record,
)
from data_pipeline.errors import InputError

_TASK_FIELDS = {"name": str, "kind": str, "labels": list, "takes_pair": bool}


class ExportedVersion(NamedTuple):
    """A version on disk."""

    name: str  # of the model
    version: int
    folder: Path


def find_exports(models: Iterable[str | Path]) -> list[ExportedVersion]:
    """Finds the versions to serve: the newest of the folder of a model, or the folder of a version.

    Raises:
        InputError: If there is no export, a name is not valid in an address, or two are equal.
    """
    found = {}
    for path in models:
        export = _find_export(path)
        if export.name in found:
            raise InputError(
                f"Models must have different names. Received: `{found[export.name].folder}` and "
                f"`{export.folder}`. Copy one of them to a folder with another name."
            )
        found[export.name] = export
    if not found:
        raise InputError("Give at least one model to serve. Received: none.")
    return list(found.values())


def _find_export(path):
    folder = Path(os.path.abspath(path))  # gives `.` a name, and does not resolve links
    if not (folder / "saved_model.pb").is_file():
        folder = folder / str(existing_versions(path)[-1])
    elif not re.fullmatch(r"[1-9]\d*", folder.name, re.ASCII):
        raise InputError(
            "The folder of a SavedModel must have its version as its name, and be in a folder with "
            f"the name of the model, such as `books/1`. Received: `{path}`. Move it to "
            f"`{folder / '1'}`."
        )
    name = folder.parent.name
    try:
        check_model_name(name)
        version = check_version(int(folder.name))
    except InputError as error:
        raise InputError(f"{error} Rename the folder of `{path}`.") from error
    return ExportedVersion(name, version, folder)


def read_task(folder: Path) -> tuple[str | None, dict | None]:
    """Reads what the export in the folder of a version is made for.

    Returns:
        "pretraining", "finetuning" or None if `export.json` does not contain it; and the "name",
        "kind" (of `tasks.kinds.KINDS`), "labels" and "takes_pair" of the task, or None.

    Raises:
        InputError: If `export.json` is damaged.
    """
    record = read_export_record(folder)
    kind, task = record.get("kind"), record.get("task")
    kind = kind if isinstance(kind, str) else None
    if task is None:
        return kind, None
    for name, expected in _TASK_FIELDS.items():
        if not isinstance(task, dict) or not isinstance(task.get(name), expected):
            raise InputError(
                f"`task` in `{folder / EXPORT_RECORD}` must have {', '.join(_TASK_FIELDS)}. "
                f"Received: {str(task)[:100]}. Export the model again."
            )
    return kind, {name: task[name] for name in _TASK_FIELDS}
