"""`albert-keras init`: files of all settings of a command, to start from."""

import re
import textwrap
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args, get_origin

import yaml
from typer import Option

from albert_keras.cli.arguments import check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Assignments
from albert_keras.cli.output import shell
from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig, StageConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_writable, whole_text
from data_pipeline.settings import Settings

_WIDTH = 100
#: Fields of a model that a file of settings does not set: they follow from the records, or have no
#: effect.
_NOT_SET = ("vocab_size", "foreign_keys", "down_scale_factor")


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


@command()
def init(
    kind: Literal[tuple(FILE_KINDS)],
    out: Annotated[Path | None, Option(metavar="FILE", show_default="KIND.yaml")] = None,
    config: Annotated[str | None, Option(metavar="FILE")] = None,
    assignments: Assignments = None,
):
    """Write a file of all settings of a command, each explained.

    KIND is data (for `data build`), pretrain, finetune, distill or distill-task. The file is for
    the option --config of the command; each setting can also be given as --set KEY=VALUE.

    Examples:
      albert-keras init pretrain --set model.size=albert-mini --out run.yaml
      albert-keras init finetune --set task.name=classification --set task.train=mail.csv \\
          --set task.text=body --set task.label=folder --out mail.yaml
      albert-keras init data --config bert --out data.yaml

    Args:
      kind: Command that the file is for.
      out: File to write; it must not exist.
      config: File or recipe of settings to start from; for data a preset: albert, reference, bert
        or roberta.
    """
    chosen = FILE_KINDS[kind]
    out = out or Path(f"{kind}.yaml")
    if out.exists():
        raise InputError(
            f"`{out}` exists, and is not overwritten. Remove it or choose another --out.",
            Mistake.OUTPUT_EXISTS,
        )
    check_writable(out)
    if chosen.config is PretrainingDataConfig:
        values = read_values(None, assignments, kind=None)
        settings = PretrainingDataConfig.preset(config or "albert", **values)
    else:
        is_task = "task" in chosen.config.model_fields
        values = read_values(config, assignments, "finetuning" if is_task else "pretraining")
        if is_task and "name" not in (values.get("task") or {}):
            raise InputError(
                "`--set task.name=...` is required. See `albert-keras finetune --help` for the "
                "tasks."
            )
        settings = chosen.config.of(values)
        if is_task:
            check_task_files(settings.task)
    with whole_text(out) as file:
        file.write(settings_file(chosen, settings, out.name))
    words = [*chosen.command.split(), "--config", out, *chosen.others.split()]
    lines = [
        f"{out}: all settings of `albert-keras {chosen.command}`",
        f"next: {shell('albert-keras', *words)}",
    ]
    return Output({"path": out}, lines)


def settings_file(kind: FileKind, config: Settings, name: str) -> str:
    """Returns the content of a file of settings; read again, it gives the same settings.

    Args:
        kind: One of `FILE_KINDS`.
        config: The settings that were chosen, of the type of the kind.
        name: The name of the file, for the command at its top.
    """
    if isinstance(config, PretrainingConfig):
        # A rate that follows from model and batch still does, if the user changes them in the file.
        optimizer = config.chosen_optimizer().replace(lr=config.optimizer.lr)
        config = config.replace(optimizer=optimizer)
    lines = [
        f"# All settings of `albert-keras {kind.command}`, with the values in effect. Options of "
        "the command",
        "# line take precedence.",
        "#",
        f"# Use: albert-keras {kind.command} --config {name} {kind.others}",
    ]
    if kind.command == "pretrain":
        lines.append("# With --init-from, remove `model`: the weights determine it.")
    return "\n".join([*lines, *_section(config, "")]) + "\n"


def _section(settings, indent):
    """Returns the lines of settings: the schema of each as a comment, and its value."""
    lines = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            lines += ["", f"{indent}{name}:", *_section(value, f"{indent}  ")]
        else:
            lines += ["", *_comment(_schema(field), indent)]
            lines.append(f"{indent}{name}: {_yaml(settings, name)}")
    return lines


def _schema(field):
    """Returns what a field is: its description, its choices, and what a missing value means."""
    text = field.description or ""
    kinds = (field.annotation, *get_args(field.annotation))
    if choices := [
        str(one) for kind in kinds if get_origin(kind) is Literal for one in kind.__args__
    ]:
        text += f" One of: {', '.join(choices)}."
    how = (field.json_schema_extra or {}).get("option", {})
    if "default_text" in how and field.default is None:
        text += f" null means: {how['default_text']}."
    if how.get("keyword") == "size":
        keys = [name for name in AlbertConfig.model_fields if name not in _NOT_SET]
        text += f" size is one of: {', '.join(AlbertConfig.names())}. These keys change its shape: "
        text += f"{', '.join(keys)}."
    if StageConfig in get_args(field.annotation):
        keys = [f"{name}: {one.description}" for name, one in StageConfig.model_fields.items()]
        text += f" The keys of a stage are: {' '.join(keys)}"
    return re.sub(r"\bNone\b", "null", text)  # Python's and YAML's name of a missing value


def _comment(text, indent):
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _yaml(settings, name):
    """Returns the value of a field as YAML on one line."""
    value = getattr(settings, name)
    if name == "model":
        value = {"size": settings.size} | value
    elif name == "stages":
        value = [stage.model_dump(mode="json", exclude_unset=True) for stage in value]
    elif isinstance(value, tuple):
        value = list(value)
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
