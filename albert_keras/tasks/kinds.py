"""The kinds of tasks: a record of each has everything that other code needs to know about it.

A new kind takes a record here, a line in `KINDS`, a folder with `task.py`, how its files and its
typed inputs become examples, rows of tokens, answers and scores, and a model with its loss in
`albert_keras/models`. Code compares kinds with `is` (`task.kind is REGRESSION`) or asks their
record (`task.kind.per_position`). This module imports no TensorFlow.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from albert_keras.config import AlbertConfig
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from data_pipeline.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class TaskKind:
    """A kind of task. There is one instance of each, so that kinds are compared with `is`.

    N is the number of rows, S the length of a row in tokens.
    """

    name: str  # as in `run.json`, `export.json` and on the command line of `tpu_check`
    task_class: str  # "module:class" of the Task
    model_class: str  # "module:class" of the AlbertForTexts: an encoder, a head and a loss
    graph_class: str  # "module:class" of the module of an export that has the string signatures
    #: What a user gives for one example; a task that takes pairs has "pair" in addition. All are
    #: texts, except for "options", a list of texts.
    fields: tuple[str, ...]
    targets: Mapping[str, str]  # names and dtypes of the labels in a batch
    #: What the model does, for the model card; `{texts}` and `{labels}` are replaced by what the
    #: texts are and by the number of labels.
    card_purpose: str
    hub_pipeline: str  # what the Hugging Face Hub calls this kind
    #: Names of tasks of this kind with files of their own, besides the tasks of GLUE.
    official_tasks: tuple[str, ...] = ()
    own_tasks: tuple[str, ...] = ()  # names of tasks of this kind on a user's own files
    per_position: bool = False  # whether outputs have a value per position, not per row
    counts_labels: bool = False  # whether the head depends on the number of classes, labels or tags
    has_several_labels: bool = False  # whether a row has a value for each label, not one of them
    uses_windows: bool = False  # whether a long text takes several rows, not truncated to one
    has_options: bool = False  # whether a row has one sequence for each option
    finds_spans: bool = False  # whether an answer is a span of a passage; scores are in percent
    texts_per_row: int = 1  # sequences of a row that are not options; rows are [N, 2, S] if it is 2

    #: Further arguments of the model, the same for every task of this kind.
    model_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def build_model(
        self,
        config: AlbertConfig,
        num_outputs: int,
        model_class: type | None = None,
        **kwargs: Any,
    ) -> Any:
        """Builds the model of this kind, a AlbertForTexts with random weights.

        Args:
            config: AlbertConfig.
            num_outputs: Number of classes, labels or tags; ignored by kinds that have none.
            model_class: A subclass of the kind's class, to be built instead.
            **kwargs: As in `AlbertForTexts` and the class of the model.

        Example:
            model = KINDS["classification"].build_model(AlbertConfig.from_name("albert-tiny"), 3)
            model({"input_ids": [[2, 48, 25, 3]]})["logits"]  # [1, 3]
        """
        built: Any = model_class or load_class(self.model_class)
        of_head = {"num_labels": num_outputs} if self.counts_labels else {}
        return built(config, **{**of_head, **self.model_settings, **kwargs})


def load_class(name: str):
    """Imports a class by "module:class", such as the `task_class` of a TaskKind."""
    module, name = name.split(":")
    return getattr(importlib.import_module(module), name)


CLASSIFICATION = TaskKind(
    name="classification",
    own_tasks=("classification", "pair"),
    task_class="albert_keras.tasks.classification.task:TextTask",
    model_class="albert_keras.models.text_classifiers:AlbertForClassification",
    graph_class="albert_keras.serving.graph.string_tasks:ClassificationModel",
    fields=("text",),
    targets={"labels": "int32"},
    card_purpose="sorts {texts} into {labels} classes",
    hub_pipeline="text-classification",
    counts_labels=True,
)
REGRESSION = dataclasses.replace(
    CLASSIFICATION,
    name="regression",
    own_tasks=("regression",),
    task_class="albert_keras.tasks.classification.regression:ScoreTask",
    model_class="albert_keras.models.text_classifiers:AlbertForRegression",
    graph_class="albert_keras.serving.graph.string_tasks:RegressionModel",
    targets={"labels": "float32"},
    card_purpose="predicts a number for {texts}",
)
#: The tasks of classification with several columns of labels, or several labels in one.
MULTI_LABEL = dataclasses.replace(
    CLASSIFICATION,
    name="multi_label",
    own_tasks=(),
    task_class="albert_keras.tasks.classification.multi_label:MultiLabelTask",
    model_class="albert_keras.models.text_classifiers:AlbertForMultiLabel",
    graph_class="albert_keras.serving.graph.string_tasks:MultiLabelModel",
    card_purpose="assigns any of {labels} labels to {texts}",
    has_several_labels=True,
)
#: The task of regression with several columns of labels.
MULTI_REGRESSION = dataclasses.replace(
    MULTI_LABEL,
    name="multi_regression",
    task_class="albert_keras.tasks.classification.regression:ScoreTask",
    model_class="albert_keras.models.text_classifiers:AlbertForRegression",
    graph_class="albert_keras.serving.graph.string_tasks:MultiRegressionModel",
    targets={"labels": "float32"},
    card_purpose="predicts {labels} numbers for {texts}",
)

CHOICE = TaskKind(
    name="choice",
    official_tasks=("race",),
    task_class="albert_keras.tasks.choice.task:ChoiceTask",
    model_class="albert_keras.models.multiple_choice:AlbertForMultipleChoice",
    graph_class="albert_keras.serving.graph.string_tasks:ChoiceModel",
    fields=("context", "question", "options"),
    targets={"labels": "int32"},
    card_purpose="chooses one of several options",
    hub_pipeline="multiple-choice",
    has_options=True,
)

TAGGING = TaskKind(
    name="tagging",
    own_tasks=("tagging",),
    task_class="albert_keras.tasks.tagging.task:TagTask",
    model_class="albert_keras.models.tagging:AlbertForTagging",
    graph_class="albert_keras.serving.graph.tagging_model:TaggingModel",
    fields=("text",),
    targets={"tag_ids": "int32"},
    card_purpose="assigns one of {labels} tags to each word",
    hub_pipeline="token-classification",
    counts_labels=True,
    per_position=True,
    uses_windows=True,
)

SPANS = TaskKind(
    name="spans",
    official_tasks=("squad1",),
    task_class="albert_keras.tasks.spans.task:SpanTask",
    model_class="albert_keras.models.spans:AlbertForSpans",
    graph_class="albert_keras.serving.graph.span_model:SpanModel",
    fields=("context", "question"),
    targets=dict.fromkeys(("start_positions", "end_positions", "is_impossible"), "int32"),
    card_purpose="answers a question with a span of a passage",
    hub_pipeline="question-answering",
    per_position=True,
    uses_windows=True,
    finds_spans=True,
)
SPANS_OR_NONE = dataclasses.replace(
    SPANS,
    name="spans_or_none",
    official_tasks=("squad2",),
    card_purpose="answers a question with a span of a passage, or says that there is none",
    per_position=False,
    model_settings={"can_be_none": True},
)

SIMILARITY = TaskKind(
    name="similarity",
    own_tasks=("similarity",),
    task_class="albert_keras.tasks.classification.regression:SimilarityTask",
    model_class="albert_keras.models.similarity:AlbertForSimilarity",
    graph_class="albert_keras.serving.graph.string_tasks:SimilarityModel",
    fields=("text",),
    targets={"labels": "float32"},
    card_purpose="scores how similar two texts are, and returns a vector for a text",
    hub_pipeline="sentence-similarity",
    texts_per_row=2,
)

#: Kinds that predict numbers, or classes, labels or numbers, of texts or of pairs of texts.
OF_NUMBERS = (REGRESSION, MULTI_REGRESSION)
OF_TEXTS = (CLASSIFICATION, MULTI_LABEL, *OF_NUMBERS)
_OTHERS = (CHOICE, TAGGING, SPANS, SPANS_OR_NONE, SIMILARITY)
#: dict of str to TaskKind. All kinds by name.
KINDS = {kind.name: kind for kind in OF_TEXTS + _OTHERS}
#: dict of str to TaskKind. The kind of each task with one label in a row, by its name.
KIND_OF = {
    name: CLASSIFICATION if task.labels else REGRESSION for name, task in GLUE_TASKS.items()
} | {name: kind for kind in KINDS.values() for name in kind.official_tasks + kind.own_tasks}


def build_task(config):
    """Returns the Task of a TaskConfig; InputError if a setting is not one of its kind."""
    kind = KIND_OF[config.name]
    if config.has_several_labels:
        kind = MULTI_REGRESSION if kind is REGRESSION else MULTI_LABEL
    task = load_class(kind.task_class)(config)
    for name, default, kinds in (
        ("class_weights", "none", (CLASSIFICATION,)),
        ("metric", None, (CLASSIFICATION, MULTI_LABEL)),
        ("threshold", None, (CLASSIFICATION, MULTI_LABEL)),
        ("word_split", None, (TAGGING,)),
    ):
        value = getattr(config, name)
        if value != default and task.kind not in kinds:
            raise InputError(
                f"`{name}` {value} requires a task of {' or '.join(kind.name for kind in kinds)}. "
                f"Received: {config.name}, a task of {task.kind.name}."
            )
    if config.pair_encoding == "separate" and not compares_pairs(task):
        raise InputError(
            f"`pair_encoding` {config.pair_encoding} requires pairs of texts, and a class or score "
            "for each pair. In a table, `pair` names the column of the second text. "
            f"Received: {config.name}, a task of {task.kind.name}."
        )
    return task


def compares_pairs(task):
    """Returns whether a Task predicts classes or scores of pairs of texts."""
    return task.kind in OF_TEXTS and task.takes_pair
