"""The task of an exported model, read without loading the model."""

from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.layout import EXPORT_RECORD, read_export_record
from albert_keras.tasks.kinds import SPANS_OR_NONE, build_task
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TASK_NAMES, TaskConfig
from data_pipeline.errors import InputError


class ExportedTask(NamedTuple):
    """The task of a fine-tuned export."""

    task: Task
    record: dict  #: Contents of `export.json`.

    @property
    def tuned(self) -> dict[str, float]:
        """Values that `Task.tune` found; InputError if they are required but missing."""
        tuned = self.record.get("tuned")
        if not isinstance(tuned, dict):
            if self.task.kind is not SPANS_OR_NONE:
                return {}
        elif all(isinstance(value, int | float) for value in tuned.values()):
            return tuned
        raise InputError(
            f"`tuned` in {EXPORT_RECORD} must contain the `null_threshold` that decides which "
            f"questions are left unanswered, or be empty. Received: {tuned!r}."
        )


def read_task(folder: Path) -> ExportedTask | None:
    """Reads which task a version is for; None for a pre-trained model, or without `export.json`.

    Unknown keys of the file are ignored.
    """
    record = read_export_record(folder)
    # Older exports have no `kind` of their own.
    if "pretraining" in (record.get("kind"), _dict_at(record, "run").get("kind")):
        return None
    settings = _dict_at(_dict_at(record, "task"), "config")
    if settings.get("name") in TASK_NAMES:
        known = {name: settings[name] for name in TaskConfig.model_fields if name in settings}
        return ExportedTask(build_task(TaskConfig(**known)), record)
    return None


def _dict_at(record, name):
    value = record.get(name)
    return value if isinstance(value, dict) else {}
