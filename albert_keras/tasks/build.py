"""From the name of a task to the task."""

from albert_keras.tasks.choice_task import ChoiceTask
from albert_keras.tasks.span_task import SpanTask
from albert_keras.tasks.tag_task import TagTask
from albert_keras.tasks.text_task import TextTask

_OTHERS = {"squad1": SpanTask, "squad2": SpanTask, "race": ChoiceTask, "tagging": TagTask}


def build_task(config):
    """Returns the Task of a TaskConfig."""
    return _OTHERS.get(config.name, TextTask)(config)
