"""The kinds of tasks: everything that other code needs to know about a kind, in one record each.

No other module spells a kind as a string literal. It compares with a record (`task.kind is
REGRESSION`) or asks one (`task.kind.per_position`). Only serialized values, such as the `kind` in
`export.json`, are the record's `name`.

A new kind takes six files:

1. `tasks/kinds.py`: its record.
2. `tasks/<folder>/<kind>_task.py`: its Task and Features.
3. `models/finetuning.py`: its model, an encoder and a head.
4. `tasks/step.py`: its loss.
5. `serving/graph/task_models.py`: its string signatures.
6. `serving/task_answers.py`: its answers, read from these signatures.

This module imports no TensorFlow.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

#: How the command line takes the fields that accompany a text.
FIELD_OPTIONS = {"pair": "--pair", "question": "--question", "options": "--option"}


@dataclasses.dataclass(frozen=True, eq=False)
class TaskKind:
    """A kind of task. There is one instance of each, so that kinds are compared with `is`.

    N is the number of rows, S the length of a row in tokens.
    """

    name: str  # as in `run.json`, `export.json` and on the command line of `tpu_check`
    task_class: str  # "module:class" of the Task
    graph_class: str  # "module:class" of the TaskModel, which has the string signatures
    #: What a user gives for one example; a task that takes pairs has "pair" in addition. All are
    #: texts, except for "options", a list of texts.
    fields: tuple[str, ...]
    sample: Mapping[str, Any]  # an example of each field
    targets: Mapping[str, str]  # names and dtypes of the labels in a batch
    outputs: Mapping[str, str]  # names of the model's outputs, and their dtypes and shapes
    #: What the model does, for the model card; `{texts}` and `{labels}` are replaced by what the
    #: texts are and by the number of labels.
    card_purpose: str
    hub_pipeline: str  # what the Hugging Face Hub calls this kind
    check_task: Mapping[str, Any]  # settings of the task that `tpu_check` compiles
    #: Names of tasks of this kind with files of their own, besides the tasks of GLUE.
    official_tasks: tuple[str, ...] = ()
    own_tasks: tuple[str, ...] = ()  # names of tasks of this kind on a user's own files
    per_position: bool = False  # whether outputs have a value per position, not per row
    has_several_labels: bool = False  # whether a row has a value for each label, not one of them
    uses_windows: bool = False  # whether a long text takes several rows, not truncated to one
    has_options: bool = False  # whether a row has one sequence for each option
    finds_spans: bool = False  # whether an answer is a span of a passage; scores are in percent
    texts_per_row: int = 1  # sequences of a row that are not options; rows are [N, 2, S] if it is 2


def load_class(name: str):
    """Imports a class by "module:class", such as the `task_class` of a TaskKind."""
    module, name = name.split(":")
    return getattr(importlib.import_module(module), name)


_QUESTION = {
    "question": "When did the ferry leave?",
    "context": "The ferry left Bergen at six in the morning.",
}

CLASSIFICATION = TaskKind(
    name="classification",
    own_tasks=("classification", "pair"),
    task_class="albert_keras.tasks.classification.task:TextTask",
    graph_class="albert_keras.serving.graph.task_models:ClassificationModel",
    fields=("text",),
    sample={"text": "A warm, funny and thoroughly enjoyable film."},
    targets={"labels": "int32"},
    outputs={"logits": "float [N, classes]"},
    card_purpose="sorts {texts} into {labels} classes",
    hub_pipeline="text-classification",
    check_task={"name": "mnli"},
)
REGRESSION = dataclasses.replace(
    CLASSIFICATION,
    name="regression",
    own_tasks=("regression",),
    graph_class="albert_keras.serving.graph.task_models:RegressionModel",
    targets={"labels": "float32"},
    outputs={"logits": "float [N, 1]"},
    card_purpose="predicts a number for {texts}",
    check_task={"name": "sts-b"},
)
CHOICE = TaskKind(
    name="choice",
    official_tasks=("race",),
    task_class="albert_keras.tasks.choice.task:ChoiceTask",
    graph_class="albert_keras.serving.graph.task_models:ChoiceModel",
    fields=("context", "question", "options"),
    sample=_QUESTION | {"options": ["at noon", "at six in the morning"]},
    targets={"labels": "int32"},
    outputs={"logits": "float [N, options]"},
    card_purpose="chooses one of several options",
    hub_pipeline="multiple-choice",
    check_task={"name": "race"},
    has_options=True,
)
TAGGING = TaskKind(
    name="tagging",
    own_tasks=("tagging",),
    task_class="albert_keras.tasks.tagging.task:TagTask",
    graph_class="albert_keras.serving.graph.tagging_model:TaggingModel",
    fields=("text",),
    sample={"text": "Angela met the president in Berlin ."},
    targets={"tag_ids": "int32"},
    outputs={"logits": "float [N, S, tags]"},
    card_purpose="assigns one of {labels} tags to each word",
    hub_pipeline="token-classification",
    check_task={"name": "tagging", "labels": ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")},
    per_position=True,
    uses_windows=True,
)
SPANS = TaskKind(
    name="spans",
    official_tasks=("squad1",),
    task_class="albert_keras.tasks.spans.task:SpanTask",
    graph_class="albert_keras.serving.graph.task_models:SpanModel",
    fields=("context", "question"),
    sample=_QUESTION,
    targets=dict.fromkeys(("start_positions", "end_positions", "is_impossible"), "int32"),
    outputs={"start_logits": "float [N, S]", "end_logits": "float [N, S]"},
    card_purpose="answers a question with a span of a passage",
    hub_pipeline="question-answering",
    check_task={"name": "squad1"},
    per_position=True,
    uses_windows=True,
    finds_spans=True,
)
SPANS_OR_NONE = dataclasses.replace(
    SPANS,
    name="spans_or_none",
    official_tasks=("squad2",),
    outputs={
        "start_log_probs": "float [N, 5]",
        "start_indices": "int [N, 5]",
        "end_log_probs": "float [N, 25], the ends of the first start first",
        "end_indices": "int [N, 25]",
        "null_logits": "float [N]",
    },
    card_purpose="answers a question with a span of a passage, or says that there is none",
    check_task={"name": "squad2"},
    per_position=False,
)
SIMILARITY = TaskKind(
    name="similarity",
    own_tasks=("similarity",),
    task_class="albert_keras.tasks.similarity.task:SimilarityTask",
    graph_class="albert_keras.serving.graph.task_models:SimilarityModel",
    fields=("text",),
    sample={"text": "The ferry left the harbour of Bergen."},
    targets={"labels": "float32"},
    outputs={"cosine": "float [N]"},
    card_purpose="scores how similar two texts are, and returns a vector for a text",
    hub_pipeline="sentence-similarity",
    check_task={"name": "similarity"},
    texts_per_row=2,
)

#: The tasks of classification with several columns of labels, or several labels in one.
MULTI_LABEL = dataclasses.replace(
    CLASSIFICATION,
    name="multi_label",
    own_tasks=(),
    task_class="albert_keras.tasks.classification.multi_label:MultiLabelTask",
    graph_class="albert_keras.serving.graph.task_models:MultiLabelModel",
    outputs={"logits": "float [N, labels]"},
    card_purpose="assigns any of {labels} labels to {texts}",
    check_task={"name": "classification", "text": "text", "label": ("a", "b", "c")},
    has_several_labels=True,
)
#: The task of regression with several columns of labels.
MULTI_REGRESSION = dataclasses.replace(
    MULTI_LABEL,
    name="multi_regression",
    task_class="albert_keras.tasks.classification.multi_regression:MultiRegressionTask",
    graph_class="albert_keras.serving.graph.task_models:MultiRegressionModel",
    targets={"labels": "float32"},
    card_purpose="predicts {labels} numbers for {texts}",
    check_task={"name": "regression", "text": "text", "label": ("a", "b", "c")},
)

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
