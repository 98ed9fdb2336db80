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
    #: Contents of `export.json`; empty if the task was derived from the signatures: then only its
    #: kind is right, while names, lengths and labels are not known.
    record: dict

    @property
    def tokenizer_digest(self) -> str | None:
        """Digest of the tokenizer in the graph, or None if `export.json` lacks it."""
        return _dict_at(self.record, "run").get("tokenizer_digest")

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
    """Reads which task a version is for; None for a pre-trained model.

    Unknown keys of `export.json` are ignored. If the file does not exist, or its task is unknown,
    the kind of task is derived from the signatures.
    """
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
    """Returns a TaskConfig of the kind that has the signatures of an export, or None."""
    if not (folder / "saved_model.pb").is_file():
        return None
    from albert_keras.serving.saved_model.signature_methods import read_signatures

    outputs = {one.name: one.outputs for one in read_signatures(folder)}
    if "fill_mask" in outputs:
        return None
    if "question_answering" in outputs:
        has_null = "null_score" in outputs["question_answering"]
        return TaskConfig(name="squad2" if has_null else "squad1")
    for name, task in (("multiple_choice", "race"), ("tags", "tagging")):
        if name in outputs:
            return TaskConfig(name=task)
    if "cosine" in outputs.get("predict_tokens", {}):
        return TaskConfig(name="similarity")
    usual = outputs.get("serving_default", {})
    columns = {"text": "text", "pair": "pair" if "text_pair" in outputs else None}
    if "labels" in usual and "label" not in usual:
        name = "classification" if "probabilities" in usual else "regression"
        return TaskConfig(name=name, **columns, label=("label", "other label"))
    if {"labels", "probabilities"} <= set(usual):
        return TaskConfig(name="pair" if columns["pair"] else "classification", **columns)
    if "score" in usual:
        return TaskConfig(name="regression", **columns)
    return None
