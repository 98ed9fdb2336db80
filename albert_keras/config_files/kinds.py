"""The kinds of files of settings, and how a file shows which one it is."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import Problem, Settings, did_you_mean


class FileKind(NamedTuple):
    """A kind of file of settings."""

    name: str  # as on the command line
    config: type[Settings]
    command: str  # the command that takes such a file
    before_file: str = "--config "  # what precedes the file on the command line
    marks: frozenset[str] = frozenset()  # keys that no other kind has
    #: Returns problems of valid settings that a run would find after it has started.
    contradictions: Callable[[Any], Iterable[Problem]] | None = None


PRETRAIN = FileKind("pretrain", PretrainingConfig, "albert-keras pretrain")
FINETUNE = FileKind("finetune", FinetuneConfig, "albert-keras finetune")
DISTILL = FileKind("distill", DistillationConfig, "albert-keras distill")
DISTILL_TASK = FileKind("distill-task", TaskDistillationConfig, "albert-keras distill")
DATA = FileKind("data", PretrainingDataConfig, "albert-keras data build")

#: All kinds by name.
FILE_KINDS = {kind.name: kind for kind in (PRETRAIN, FINETUNE, DISTILL, DISTILL_TASK, DATA)}


def find_kind(name: str, others: Iterable[FileKind] = ()) -> FileKind:
    """Returns the kind of a name, one of `FILE_KINDS` or others; InputError if there is none."""
    kinds = FILE_KINDS | {kind.name: kind for kind in others}
    if name not in kinds:
        raise InputError(f"`{name}` is not a kind of file{did_you_mean(name, kinds)}")
    return kinds[name]


def kind_of(values: dict[str, Any], others: Iterable[FileKind] = ()) -> FileKind:
    """Returns the kind that the keys of a file belong to: only a fine-tuning has a task.

    Sections of a training take precedence, so that a misspelt key does not change the kind. Of the
    `others`, a file is of the first one that has one of its `marks`.
    """
    for kind in others:
        if kind.marks & values.keys():
            return kind
    has_teacher = "distillation" in values
    if "task" in values:
        return DISTILL_TASK if has_teacher else FINETUNE
    if has_teacher:
        return DISTILL
    if not PRETRAIN.config.model_fields.keys() & values.keys():
        if DATA.config.model_fields.keys() & values.keys():
            return DATA
    return PRETRAIN
