"""Examples made from what a user types or sends."""

import collections
from typing import Any

from albert_keras.tasks.task import Task
from data_pipeline.errors import InputError


def typed_examples(task: Task, inputs: list[dict | str]) -> list:
    """Returns examples made from a user's inputs; see `FinetunedModels.examples`."""
    examples = []
    for number, fields in enumerate(inputs):
        fields = {"text": fields} if isinstance(fields, str) else fields
        try:
            examples.append(typed_example(task, number, fields))
        except InputError as error:
            location = f"Input {number + 1} of {len(inputs)}: " if len(inputs) > 1 else ""
            raise InputError(f"{location}{error}") from error
    ids = collections.Counter(example.id for example in examples)
    twice = [id for id, count in ids.items() if count > 1]
    if twice:
        raise InputError(f"Inputs must have different ids. Received twice: {twice[0]!r}.")
    return examples


def typed_example(task: Task, number: int, fields: Any) -> Any:
    """Returns an example of a dict of fields, which may include its id; else that is `number`."""
    if not isinstance(fields, dict):
        raise InputError(f"An input must be a dict of texts by name. Received: {fields!r}.")
    fields = dict(fields)
    id = fields.pop("id", number)
    if not isinstance(id, str | int):
        raise InputError(f"`id` must be a text or a number. Received: {id!r}.")
    for name, value in fields.items():
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text):
                raise InputError(f"`{name}` must be Unicode. It has half a surrogate pair.")
    return task.example(id, fields)
