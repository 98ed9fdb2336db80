"""All kinds of tasks. A new kind takes a folder like those imported here, and a line in `KINDS`.

The folder has, in `__init__.py`, its record; in `task.py`, how its files and its typed inputs
become examples, rows of tokens, answers and scores; and in `model.py`, its model and its loss.
This module imports no TensorFlow, and neither does the first of these files.
"""

from albert_keras.tasks.choice import CHOICE
from albert_keras.tasks.classification import (
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
)
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.kind import load_class
from albert_keras.tasks.similarity import SIMILARITY
from albert_keras.tasks.spans import SPANS, SPANS_OR_NONE
from albert_keras.tasks.tagging import TAGGING
from data_pipeline.errors import InputError

#: dict of str to TaskKind. All kinds by name.
KINDS = {
    kind.name: kind
    for kind in (
        CLASSIFICATION,
        REGRESSION,
        CHOICE,
        TAGGING,
        SPANS,
        SPANS_OR_NONE,
        MULTI_LABEL,
        MULTI_REGRESSION,
        SIMILARITY,
    )
}


def build_task(config):
    """Returns the Task of a TaskConfig; InputError if a setting is not one of its kind."""
    if config.has_several_labels:
        is_score = config.name in REGRESSION.own_tasks
        kind = MULTI_REGRESSION if is_score else MULTI_LABEL
    else:
        names = ((kind, kind.official_tasks + kind.own_tasks) for kind in KINDS.values())
        of_glue = GLUE_TASKS.get(config.name)
        usual = CLASSIFICATION if of_glue is None or of_glue.labels else REGRESSION
        kind = next((kind for kind, tasks in names if config.name in tasks), usual)
    task = load_class(kind.task_class)(config)
    for name, default, kinds in (
        ("class_weights", "none", (CLASSIFICATION,)),
        ("metric", None, (CLASSIFICATION, MULTI_LABEL)),
    ):
        value = getattr(config, name)
        if value != default and task.kind not in kinds:
            raise InputError(
                f"`{name}` {value} requires a task of {' or '.join(kind.name for kind in kinds)}. "
                f"Received: {config.name}, a task of {task.kind.name}."
            )
    if config.pair_encoding == "separate" and not compares_pairs(task):
        raise InputError(
            f"`pair_encoding` {config.pair_encoding} requires pairs of texts, and a class or score "
            "for each pair. In a table, `pair` (--pair) names the column of the second text. "
            f"Received: {config.name}, a task of {task.kind.name}."
        )
    return task


def compares_pairs(task):
    """Returns whether a Task predicts classes or scores of pairs of texts."""
    kinds = (CLASSIFICATION, REGRESSION, MULTI_LABEL, MULTI_REGRESSION)
    return task.kind in kinds and task.takes_pair
