"""The kinds of files of settings, and how a file shows which one it is."""

from typing import Any, NamedTuple

from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import Settings, did_you_mean


class FileKind(NamedTuple):
    """A kind of file of settings."""

    name: str  # as on the command line
    config: type[Settings]
    command: str  # the command whose `--config` takes such a file


PRETRAIN = FileKind("pretrain", PretrainingConfig, "albert-keras pretrain")
FINETUNE = FileKind("finetune", FinetuneConfig, "albert-keras finetune")
DISTILL = FileKind("distill", DistillationConfig, "albert-keras distill")
DISTILL_TASK = FileKind("distill-task", TaskDistillationConfig, "albert-keras distill")
DATA = FileKind("data", PretrainingDataConfig, "albert-keras data build")

#: All kinds by name.
FILE_KINDS = {kind.name: kind for kind in (PRETRAIN, FINETUNE, DISTILL, DISTILL_TASK, DATA)}


def find_kind(name: str) -> FileKind:
    """Returns the kind of a name; raises InputError if there is none."""
    if name not in FILE_KINDS:
        raise InputError(f"`{name}` is not a kind of file{did_you_mean(name, FILE_KINDS)}")
    return FILE_KINDS[name]


def kind_of(values: dict[str, Any]) -> FileKind:
    """Returns the kind that the keys of a file belong to: only a fine-tuning has a task.

    Sections of a training take precedence, so that a misspelt key does not change the kind.
    """
    has_teacher = "distillation" in values
    if "task" in values:
        return DISTILL_TASK if has_teacher else FINETUNE
    if has_teacher:
        return DISTILL
    if not PRETRAIN.config.model_fields.keys() & values.keys():
        if DATA.config.model_fields.keys() & values.keys():
            return DATA
    return PRETRAIN
