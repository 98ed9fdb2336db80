"""The module of an export that has the string signatures of a task, by the kind of the task."""

from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.serving.graph.span_model import SpanModel
from albert_keras.serving.graph.string_tasks import (
    ChoiceModel,
    ClassificationModel,
    MultiLabelModel,
    MultiRegressionModel,
    RegressionModel,
    SimilarityModel,
    TaskModel,
)
from albert_keras.serving.graph.tagging_model import TaggingModel
from albert_keras.tasks.task import Task
from data_pipeline.tokenizers.tokenization import Tokenizer

TASK_MODELS: dict[str, type[TaskModel]] = {
    "classification": ClassificationModel,
    "multi_label": MultiLabelModel,
    "regression": RegressionModel,
    "multi_regression": MultiRegressionModel,
    "choice": ChoiceModel,
    "tagging": TaggingModel,
    "spans": SpanModel,
    "spans_or_none": SpanModel,
    "similarity": SimilarityModel,
}


def build_task_model(
    model: AlbertForTask, tokenizer: Tokenizer, task: Task, *args, **kwargs
) -> TaskModel:
    """Builds the TaskModel for the kind of a task; arguments and errors as of `TaskModel`."""
    return TASK_MODELS[task.kind](model, tokenizer, task, *args, **kwargs)
