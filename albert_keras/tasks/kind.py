"""The record of a kind of task: everything that other code needs to know about a kind.

Code compares kinds with `is` (`task.kind is REGRESSION`) or asks their record
(`task.kind.per_position`). This module imports no TensorFlow.
"""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

from albert_keras.config import AlbertConfig

#: How the command line takes the fields that accompany a text.
FIELD_OPTIONS = {"pair": "--pair", "question": "--question", "options": "--option"}


@dataclasses.dataclass(frozen=True, eq=False)
class TaskKind:
    """A kind of task. There is one instance of each, so that kinds are compared with `is`.

    N is the number of rows, S the length of a row in tokens.
    """

    name: str  # as in `run.json`, `export.json` and on the command line of `tpu_check`
    task_class: str  # "module:class" of the Task
    model_class: str  # "module:class" of the AlbertTaskModel: an encoder, a head and a loss
    graph_class: str  # "module:class" of the module of an export that has the string signatures
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

    #: Further arguments of the model, the same for every task of this kind.
    model_settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def build_model(
        self,
        config: AlbertConfig,
        num_outputs: int,
        model_class: type | None = None,
        **kwargs: Any,
    ) -> Any:
        """Builds the model of this kind, a AlbertTaskModel with random weights.

        Args:
            config: AlbertConfig.
            num_outputs: Number of classes, labels or tags; ignored by kinds that have none.
            model_class: A subclass of the kind's class, to be built instead.
            **kwargs: As in `AlbertTaskModel` and the class of the model.

        Example:
            model = KINDS["classification"].build_model(AlbertConfig.from_name("albert-tiny"), 3)
            model({"input_ids": [[2, 48, 25, 3]]})["logits"]  # [1, 3]
        """
        built: Any = model_class or load_class(self.model_class)
        return built.with_outputs(config, num_outputs, **{**self.model_settings, **kwargs})


def load_class(name: str):
    """Imports a class by "module:class", such as the `task_class` of a TaskKind."""
    module, name = name.split(":")
    return getattr(importlib.import_module(module), name)
