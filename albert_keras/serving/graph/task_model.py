"""From the kind of a task to its model over plain strings.

All of what a row is made of is as in the Python path (`Task.features`), and so are the answers
(`Task.answers`), as long as texts are not cut at `TextPacker.max_bytes`.
"""

from albert_keras.tasks.kinds import load_class


def build_task_model(model, tokenizer, task, *args, **kwargs):
    """Returns the TaskModel of a task's kind; arguments and errors as of `TaskModel`."""
    return load_class(task.kind.graph_class)(model, tokenizer, task, *args, **kwargs)
