"""Examples of a task made from what a user has in memory.

That is lists, arrays, columns of a data frame, or a tf.data.Dataset.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import CLASSIFICATION, MULTI_LABEL, TAGGING, build_task
from albert_keras.tasks.tables.files import label_names
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import READ_FROM_TABLES, TaskConfig
from data_pipeline.errors import InputError


def columns_of(task: Task, inputs: Any, labels: Any = None) -> tuple[dict[str, list], list | None]:
    """Returns the parts of examples as lists by their names, and their labels.

    Args:
        task: Task.
        inputs: The texts of N examples: a list, an array, a pandas Series, or a tf.data.Dataset of
            texts or of (text, label). If an example has several parts, a tuple with a list of each
            part in the order of `Task.fields`, or a dict of lists by the names of these parts. For
            tagging, each sentence may be a text or a list of words.
        labels: The truth of each example, see `Task.with_truth`; None if it is unknown.

    Raises:
        InputError: If an example does not have such parts.
    """
    if hasattr(inputs, "as_numpy_iterator"):  # a tf.data.Dataset
        inputs = list(inputs.as_numpy_iterator())
        if labels is None and inputs and isinstance(inputs[0], tuple):
            inputs, labels = map(list, zip(*inputs, strict=True))
        if inputs and isinstance(inputs[0], tuple):
            inputs = tuple(zip(*inputs, strict=True))
        elif inputs and isinstance(inputs[0], dict):
            inputs = {name: [row[name] for row in inputs] for name in inputs[0]}
    if isinstance(inputs, str):
        raise InputError("Inputs must be a list of texts. Received: a single text.")
    if _has_parts(inputs):
        names = ("text", "pair") if task.fields[0] == "text" else task.fields
        if len(inputs) > len(names):
            raise InputError(
                f"An example of {task.config.name} has the parts {', '.join(names)}. "
                f"Received: {len(inputs)} parts."
            )
        inputs = dict(zip(names, inputs, strict=False))
    if not isinstance(inputs, Mapping):
        inputs = {"text": inputs}
    columns = {str(name): plain(values) for name, values in inputs.items()}
    return columns, None if labels is None else plain(labels)


def examples_of(task: Task, columns: dict[str, list], truths: list | None = None) -> list:
    """Returns examples of a task; arguments as returned by `columns_of`.

    Raises:
        InputError: If an input or a label does not suit the task, or their numbers differ.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if truths is not None:
        lengths["labels"] = len(truths)
    if len(set(lengths.values())) != 1 or not min(lengths.values()):
        listing = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise InputError(
            f"There must be at least one input, and as many labels. Received: {listing}."
        )
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    examples = task.typed_examples(rows)
    for number, truth in enumerate(truths or ()):
        try:
            examples[number] = task.with_truth(examples[number], truth)
        except (InputError, ValueError) as error:
            raise InputError(f"Label {number + 1} of {len(rows)}: {error}") from error
    return examples


def settings_of(settings: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Returns settings of a task with names for the parts of examples that are in memory.

    Args:
        settings: By keyword, among them `task`.
        data: (inputs, labels), see `columns_of`; a dataset of both; or a DataFrame, whose columns
            `text`, `pair` and `label` name as those of a file.
    """
    found = dict(settings)
    if not hasattr(data, "columns") and found.get("task") in READ_FROM_TABLES:
        found = {"text": "text", "label": "label"} | found
        inputs = data[0] if isinstance(data, tuple) else None
        if _has_parts(inputs) or found["task"] in ("pair", "similarity"):
            found = {"pair": "pair"} | found
    return found


def read_given(config: TaskConfig, data: Any) -> tuple[TaskConfig, list]:
    """Returns the examples of data in memory, see `settings_of`, and a config with their labels.

    Raises:
        InputError: If an input or a label does not suit the task.
    """
    task = build_task(config)
    if hasattr(data, "columns"):
        columns, truths = _frame_columns(config, data)
    else:
        columns, truths = columns_of(task, *(data if isinstance(data, tuple) else (data,)))
    has_names = config.labels is not None or isinstance(config.label, tuple)
    if not has_names and task.kind in (CLASSIFICATION, MULTI_LABEL, TAGGING):
        rows = [(truth,) if task.kind is CLASSIFICATION else truth for truth in truths or ()]
        named = [TextExample("", "", None, str(label)) for labels in rows for label in labels]
        config = config.replace(labels=label_names(named))
        task = build_task(config)
    return config, examples_of(task, columns, truths)


def _frame_columns(config, frame):
    """Returns the inputs and the labels in the columns of a DataFrame."""
    texts = {
        name: getattr(config, name)
        for name in ("text", "pair")
        if getattr(config, name) is not None
    }
    labels = config.label if isinstance(config.label, tuple) else [config.label]
    for name in (*texts.values(), *labels):
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns))
            raise InputError(f"The table has no column `{name}`. Received the columns {known}.")
    columns = {name: plain(frame[column]) for name, column in texts.items()}
    truths = [plain(frame[name]) for name in labels]
    return columns, truths[0] if len(truths) == 1 else list(map(list, zip(*truths, strict=True)))


def _has_parts(inputs):
    """Returns whether inputs are a tuple with a list of each part, and not a tuple of texts."""
    return isinstance(inputs, tuple) and not (inputs and isinstance(inputs[0], str | bytes))


def plain(value: Any) -> Any:
    """Returns values of NumPy, TensorFlow or pandas as plain Python ones: lists, str, numbers."""
    for method in ("numpy", "tolist"):
        if hasattr(value, method):
            value = getattr(value, method)()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [plain(one) for one in value]
    return value
