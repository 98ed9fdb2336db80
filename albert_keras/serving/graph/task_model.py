"""From the kind of a task to its model over plain strings.

All of what a row is made of is as in the Python path (`Task.features`), and so are the answers
(`Task.answers`), as long as texts are not cut at `TextPacker.max_bytes`.
"""

from albert_keras.serving.graph.choice import ChoiceModel
from albert_keras.serving.graph.spans import SpanModel
from albert_keras.serving.graph.tagging import TaggingModel
from albert_keras.serving.graph.text_tasks import ClassificationModel, RegressionModel

_CLASSES = {
    "classification": ClassificationModel,
    "regression": RegressionModel,
    "tagging": TaggingModel,
    "choice": ChoiceModel,
    "spans": SpanModel,
    "spans_or_none": SpanModel,
}


def build_task_model(model, tokenizer, task, *args, **kwargs):
    """Returns the TaskModel of a task's kind; arguments and errors as of `TaskModel`."""
    return _CLASSES[task.kind](model, tokenizer, task, *args, **kwargs)
