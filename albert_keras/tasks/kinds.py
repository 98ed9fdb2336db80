"""The kinds of tasks by name: what a kind decides stands in its class, see `Task`.

A kind is a class of model, which makes rows, losses and answers, and a Task, which reads files and
scores. A new one is added by `register_kind`. This module imports no TensorFlow, and no class
before it is needed.
"""

import importlib
from collections.abc import Callable
from typing import Any

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from data_pipeline.errors import InputError

#: Kind, as in `run.json`, `export.json` and on the command line of `tpu_check` -> its Task.
KINDS: dict[str, Any] = {
    "classification": "classification.task:TextTask",
    "multi_label": "classification.multi_label:MultiLabelTask",
    "regression": "classification.regression:ScoreTask",
    "multi_regression": "classification.regression:ScoresTask",
    "choice": "choice.task:ChoiceTask",
    "tagging": "tagging.task:TagTask",
    "spans": "spans.task:SpanTask",
    "spans_or_none": "spans.task:SpanOrNoneTask",
    "similarity": "classification.regression:SimilarityTask",
}
#: Task with official files -> its kind.
OFFICIAL_TASKS = {
    **{
        name: "classification" if task.labels else "regression" for name, task in GLUE_TASKS.items()
    },
    "race": "choice",
    "squad1": "spans",
    "squad2": "spans_or_none",
}
#: Task on a user's own files -> its kind, if a row has one label.
OWN_TASKS = {
    "classification": "classification",
    "pair": "classification",
    "regression": "regression",
    "tagging": "tagging",
    "similarity": "similarity",
}
#: Kinds whose head reads the vector of a text or of a pair.
KINDS_OF_TEXTS = (
    "classification",
    "multi_label",
    "regression",
    "multi_regression",
    "similarity",
)
#: Setting -> its usual value, and the kinds that can have another.
_SETTINGS = {
    "class_weights": ("none", ("classification",)),
    "metric": (None, ("classification", "multi_label")),
    "threshold": (None, ("classification", "multi_label")),
    "objective": ("auto", ("similarity",)),
    "pooling": ("auto", KINDS_OF_TEXTS),
    "offsets": ("characters", ("tagging",)),
    "word_split": (None, ("tagging",)),
}


def register_kind(name: str) -> Callable[[Any], Any]:
    """Returns a decorator that registers a Task for a user's own files, as the task `name`.

    Its `model_class` must be registered with Keras. Import its module before such a task is
    trained, opened or served.

    Example:
        @register_kind("share")
        class ShareTask(Task):
            model_class, metric, is_official = AlbertForShares, "spearman", False
    """

    def register(task):
        task.kind, KINDS[name], OWN_TASKS[name] = name, task, name
        return task

    return register


def task_names() -> tuple[str, ...]:
    """Returns the names of all tasks."""
    return (*OFFICIAL_TASKS, *OWN_TASKS)


def task_class(kind: str) -> Any:
    """Imports the class of a kind, a Task."""
    if not isinstance(KINDS[kind], str):
        return KINDS[kind]
    module, name = KINDS[kind].split(":")
    return getattr(importlib.import_module(f"albert_keras.tasks.{module}"), name)


def build_task(config):
    """Returns the Task of a TaskConfig; InputError if a setting is not one of its kind."""
    kind = (OFFICIAL_TASKS | OWN_TASKS)[config.name]
    if config.has_several_labels:
        kind = "multi_regression" if kind == "regression" else "multi_label"
    task = task_class(kind)(config)
    for name, (usual, kinds) in _SETTINGS.items():
        value = getattr(config, name)
        if value != usual and kind not in kinds:
            raise InputError(
                f"`{name}` {value} requires a task of {' or '.join(kinds)}. "
                f"Received: {config.name}, a task of {kind}."
            )
    if config.pair_encoding == "separate" and not task.compares_pairs:
        raise InputError(
            f"`pair_encoding` {config.pair_encoding} requires pairs of texts, and a class or score "
            "for each pair. In a table, `pair` names the column of the second text. "
            f"Received: {config.name}, a task of {kind}."
        )
    return task
