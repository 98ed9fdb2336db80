"""Classes, any of several labels, or numbers for texts and pairs of texts."""

import dataclasses

from albert_keras.tasks.kind import TaskKind

CLASSIFICATION = TaskKind(
    name="classification",
    own_tasks=("classification", "pair"),
    task_class="albert_keras.tasks.classification.task:TextTask",
    model_class="albert_keras.tasks.classification.model:AlbertForClassification",
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
    task_class="albert_keras.tasks.classification.regression:ScoreTask",
    model_class="albert_keras.tasks.classification.model:AlbertForRegression",
    graph_class="albert_keras.serving.graph.task_models:RegressionModel",
    targets={"labels": "float32"},
    outputs={"logits": "float [N, 1]"},
    card_purpose="predicts a number for {texts}",
    check_task={"name": "sts-b"},
)
#: The tasks of classification with several columns of labels, or several labels in one.
MULTI_LABEL = dataclasses.replace(
    CLASSIFICATION,
    name="multi_label",
    own_tasks=(),
    task_class="albert_keras.tasks.classification.multi_label:MultiLabelTask",
    model_class="albert_keras.tasks.classification.model:AlbertForMultiLabel",
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
    task_class="albert_keras.tasks.classification.regression:ScoreTask",
    model_class="albert_keras.tasks.classification.model:AlbertForRegression",
    graph_class="albert_keras.serving.graph.task_models:MultiRegressionModel",
    targets={"labels": "float32"},
    card_purpose="predicts {labels} numbers for {texts}",
    check_task={"name": "regression", "text": "text", "label": ("a", "b", "c")},
)
