"""Which task an exported folder is for, read without loading its model."""

from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.export_record import EXPORT_RECORD, read_export_record
from albert_keras.serving.layout import existing_versions
from albert_keras.tasks.build import build_task
from albert_keras.tasks.kinds import SPANS_OR_NONE
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TASK_NAMES, TaskConfig
from data_pipeline.errors import InputError


class ExportedTask(NamedTuple):
    """The task of a fine-tuned export.

    Attributes:
        task: Task.
        record: dict. What `export.json` holds; empty if the task was told by the signatures alone:
            then it is another of the same kind, with other names, lengths and no labels.
    """

    task: Task
    record: dict

    @property
    def fields(self):
        """Names of the texts that are asked for, see `Task.example`: tuple of str."""
        return self.task.fields

    @property
    def tokenizer_digest(self):
        """Digest of the graph's tokenizer, str, or None if `export.json` does not tell."""
        return _dict_at(self.record, "run").get("tokenizer_digest")

    @property
    def tuned(self):
        """What `Task.tune` found for the exported model, dict of str to float.

        Raises:
            InputError: If the answers depend on it and `export.json` does not tell.
        """
        tuned = self.record.get("tuned")
        is_told = isinstance(tuned, dict)
        if not is_told and self.task.kind is not SPANS_OR_NONE:
            return {}
        if not is_told or not all(isinstance(value, int | float) for value in tuned.values()):
            raise InputError(
                f"`tuned` in {EXPORT_RECORD} should tell the `null_threshold` from which questions "
                f"are left unanswered, or be empty. Received: {tuned!r}."
            )
        return tuned


def version_folder(path):
    """Returns the folder of one version.

    Args:
        path: str or Path. Such a folder, or that of the name, of which it is the newest version.

    Returns:
        Path.

    Raises:
        InputError: If there is no export.
    """
    path = Path(path)
    if (path / "saved_model.pb").is_file():
        return path
    return path / str(existing_versions(path)[-1])


def read_task(folder):
    """Reads which task an export is for.

    Keys of `export.json` that are not known change nothing. Where it is missing, or its task is
    not known, the signatures tell.

    Args:
        folder: str or Path. Of one version.

    Returns:
        ExportedTask, or None if it is for none, as pre-trained models are.

    Raises:
        InputError: If `export.json` or `saved_model.pb` is damaged.
    """
    folder = Path(folder)
    record = read_export_record(folder)
    # Older exports have no `kind` of their own.
    if "pretraining" in (record.get("kind"), _dict_at(record, "run").get("kind")):
        return None
    settings = _dict_at(_dict_at(record, "task"), "config")
    if settings.get("name") in TASK_NAMES:
        known = {name: settings[name] for name in TaskConfig.model_fields if name in settings}
        return ExportedTask(build_task(TaskConfig(**known)), record)
    config = _config_by_signatures(folder)
    return config and ExportedTask(build_task(config), {})


def _dict_at(record, name):
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def _config_by_signatures(folder):
    """Returns a TaskConfig of the kind that signatures are made for, or None."""
    if not (folder / "saved_model.pb").is_file():
        return None
    from albert_keras.serving.saved_model.signature_methods import read_signatures

    signatures = {one.name: one for one in read_signatures(folder)}
    if "fill_mask" in signatures:
        return None
    if "question_answering" in signatures:
        has_none = "null_score" in signatures["question_answering"].outputs
        return TaskConfig(name="squad2" if has_none else "squad1")
    for name, task in (("multiple_choice", "race"), ("tags", "tagging")):
        if name in signatures:
            return TaskConfig(name=task)
    usual = signatures.get("serving_default")
    columns = {"text": "text", "pair": "pair" if "text_pair" in signatures else None}
    if usual is not None and {"labels", "probabilities"} <= set(usual.outputs):
        return TaskConfig(name="pair" if columns["pair"] else "classification", **columns)
    if usual is not None and "score" in usual.outputs:
        return TaskConfig(name="regression", **columns)
    return None
