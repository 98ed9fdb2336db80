"""Files of all settings of a command, to start from."""

from typing import NamedTuple

from albert_keras.config_files.commented import commented_yaml
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.settings import Settings


class FileKind(NamedTuple):
    """A kind of file of settings."""

    config: type[Settings]
    command: str  # the command that takes such a file
    others: str  # what else this command requires


#: All kinds by name.
FILE_KINDS = {
    "data": FileKind(
        PretrainingDataConfig, "data build", "--corpus ... --tokenizer ... --out records/"
    ),
    "pretrain": FileKind(PretrainingConfig, "pretrain", "--data ... --out runs/..."),
    "finetune": FileKind(FinetuneConfig, "finetune", "--from ... --out runs/..."),
    "distill": FileKind(DistillationConfig, "distill", "--teacher ... --data ... --out runs/..."),
    "distill-task": FileKind(
        TaskDistillationConfig, "distill", "--teacher ... --from ... --out runs/..."
    ),
}


def settings_file(kind: FileKind, config: Settings, name: str) -> str:
    """Returns the content of a file of settings.

    Args:
        kind: One of `FILE_KINDS`.
        config: The settings that were chosen, of the type of the kind.
        name: The name of the file, for the command at its top.
    """
    if isinstance(config, PretrainingConfig):
        # A rate that follows from model and batch still does, if the user changes them in the file.
        optimizer = config.chosen_optimizer().replace(lr=config.optimizer.lr)
        config = config.replace(optimizer=optimizer)
    header = [
        f"All settings of `albert-keras {kind.command}`, with the values in effect. Options of the",
        "command line take precedence.",
        "",
        f"Use: albert-keras {kind.command} --config {name} {kind.others}",
    ]
    if kind.command == "pretrain":
        header.append("With --init-from, remove the section `model`: the weights determine it.")
    return commented_yaml(config, header)
