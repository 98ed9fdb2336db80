"""Examples of a task made from what a user has in memory.

That is lists, arrays, columns of a data frame, or a tf.data.Dataset.
"""

from collections.abc import Mapping
from typing import Any

from albert_keras.models.text_inputs import examples_of, is_parts, plain, without_width
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.tables.files import label_names
from albert_keras.tasks.task_config import READ_FROM_TABLES, TaskConfig
from data_pipeline.errors import InputError


def settings_of(settings: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Returns settings of a task with names for the parts of examples that are in memory.

    Args:
        settings: By keyword, among them `task`.
        data: (inputs, labels), see `text_inputs.examples_of`; a dataset of both; or a DataFrame,
            whose columns `text`, `pair` and `label` name as those of a file.
    """
    found = dict(settings)
    if not hasattr(data, "columns") and found.get("task") in READ_FROM_TABLES:
        found = {"text": "text", "label": "label"} | found
        inputs = data[0] if isinstance(data, tuple) else None
        if is_parts(inputs) or found["task"] in ("pair", "similarity"):
            found = {"pair": "pair"} | found
    return found


def read_given(config: TaskConfig, data: Any) -> tuple[TaskConfig, list]:
    """Returns the examples of data in memory, see `settings_of`, and a config with their labels.

    Raises:
        InputError: If an input or a label does not suit the task.
    """
    task = build_task(config)
    names = ("text", "pair") if task.fields[0] == "text" else task.fields
    names = ("text", "words") if task.kind == "tagging" else names
    if hasattr(data, "columns"):
        data = _of_frame(config, data)
    elif hasattr(data, "as_numpy_iterator"):
        data = _of_dataset(data)
    found = examples_of(*(data if isinstance(data, tuple) else (data, None)), None, names)
    columns, truths = found.columns, found.labels
    has_names = config.labels is not None or isinstance(config.label, tuple)
    if not has_names and task.kind in ("classification", "multi_label", "tagging"):
        rows = [without_width(truths or [])] if task.kind == "classification" else truths or ()
        named = [TextExample("", "", None, str(label)) for labels in rows for label in labels]
        config = config.replace(labels=label_names(named))
        task = build_task(config)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    examples = task.typed_examples(rows)
    return config, examples if truths is None else task.with_truths(examples, truths)


def _of_frame(config, frame):
    """Returns the inputs and the labels in the columns of a DataFrame."""
    chosen = {name: getattr(config, name) for name in ("text", "pair")}
    texts = {name: column for name, column in chosen.items() if column is not None}
    labels = config.label if isinstance(config.label, tuple) else [config.label]
    for name in (*texts.values(), *labels):
        if name not in frame.columns:
            known = ", ".join(map(str, frame.columns))
            raise InputError(f"The table has no column `{name}`. Received the columns {known}.")
    truths = [plain(frame[name]) for name in labels]
    inputs = {name: frame[column] for name, column in texts.items()}
    return inputs, truths[0] if len(truths) == 1 else list(map(list, zip(*truths, strict=True)))


def _of_dataset(data):
    """Returns the inputs and the labels of a tf.data.Dataset of single examples."""
    rows = list(data.as_numpy_iterator())
    inputs, labels = rows, None
    if rows and isinstance(rows[0], tuple):
        inputs, labels = map(list, zip(*rows, strict=True))
    if inputs and isinstance(inputs[0], tuple):
        inputs = tuple(map(list, zip(*inputs, strict=True)))
    elif inputs and isinstance(inputs[0], Mapping):
        inputs = {name: [row[name] for row in inputs] for name in inputs[0]}
    return inputs, labels
