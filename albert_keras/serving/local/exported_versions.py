"""The exports to serve: which versions, by what names, for which tasks. Nothing is loaded here."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.layout import (
    EXPORT_RECORD,
    check_model_name,
    existing_versions,
    models_in,
    read_export_record,
    split_version,
    versions,
)
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError

_TASK_FIELDS = {"name": str, "kind": str, "labels": list, "takes_pair": bool}


class ExportedVersion(NamedTuple):
    """A version on disk."""

    name: str  # of the model
    version: int
    folder: Path


def find_exports(models: Iterable[str | Path]) -> list[ExportedVersion]:
    """Finds the versions to serve.

    Args:
        models: Folders of models or names of shipped models, to serve their newest version; folders
            of one version; or folders of several models, to serve all of them.

    Raises:
        InputError: If there is no export, a name is not valid in an address, or two are equal.
    """
    found = {}
    for path in map(find_model, models):
        is_one = versions(path) or (Path(path) / "saved_model.pb").is_file()
        for one in [path] if is_one else models_in(path) or [path]:
            export = _find_export(one)
            if export.name in found:
                raise InputError(
                    "Models must have different names. Received: "
                    f"`{found[export.name].folder}` and `{export.folder}`. Copy one of them to a "
                    "folder with another name."
                )
            found[export.name] = export
    if not found:
        raise InputError("Give at least one model to serve. Received: none.")
    return list(found.values())


def _find_export(path):
    folder, version = split_version(path)
    name = folder.name
    try:
        version = existing_versions(path)[-1] if version is None else version
        return ExportedVersion(check_model_name(name), version, folder / str(version))
    except InputError as error:
        if versions(folder):
            raise InputError(f"{error} Rename the folder of `{path}`.") from error
        raise


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
