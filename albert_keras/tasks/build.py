"""From the name of a task to the task."""

from albert_keras.tasks.race.choice_task import ChoiceTask
from albert_keras.tasks.squad.span_task import SpanTask
from albert_keras.tasks.tables.text_task import TextTask
from albert_keras.tasks.tagging.tag_task import TagTask

_OTHERS = {"squad1": SpanTask, "squad2": SpanTask, "race": ChoiceTask, "tagging": TagTask}


def build_task(config):
    """Returns the Task of a TaskConfig."""
    return _OTHERS.get(config.name, TextTask)(config)
