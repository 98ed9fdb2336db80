"""The kinds of tasks by name: what a kind decides stands in its class, see `Task`.

A new kind takes a line here, a folder with `task.py`, a model with its loss in
`albert_keras/models`, and a module of exports in `albert_keras/serving/graph`. This module imports
no TensorFlow, and no class before it is needed.
"""

import importlib
from typing import Any

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from data_pipeline.errors import InputError

#: Kind, as in `run.json`, `export.json` and on the command line of `tpu_check` -> its Task.
KINDS = {
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
#: Setting -> its usual value, and the kinds that can have another.
_SETTINGS = {
    "class_weights": ("none", ("classification",)),
    "metric": (None, ("classification", "multi_label")),
    "threshold": (None, ("classification", "multi_label")),
    "offsets": ("characters", ("tagging",)),
    "word_split": (None, ("tagging",)),
}


def task_class(kind: str) -> Any:
    """Imports the class of a kind, a Task."""
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
