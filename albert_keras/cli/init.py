"""`albert-keras init`: files of all settings of a command, to start from."""

import re
import textwrap
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args, get_origin

import yaml
from typer import Option

from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Assignments
from albert_keras.cli.output import shell
from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_writable, whole_text
from data_pipeline.settings import Settings

_WIDTH = 100
#: What PyYAML writes after a value that is no mapping or list.
_END = "...\n"


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
    if kind == "data":
        values = read_values(None, assignments, kind=None)
        settings = PretrainingDataConfig.preset(config or "albert", **values)
    else:
        recipes = "finetuning" if "task" in chosen.config.model_fields else "pretraining"
        settings = chosen.config.of(read_values(config, assignments, recipes))
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
    about = [
        f"All settings of `albert-keras {kind.command}`. Options of the command take precedence.",
        f"Use: albert-keras {kind.command} --config {name} {kind.others}",
    ]
    if isinstance(config, PretrainingConfig):
        about += [
            "`model` has a size and the fields of AlbertConfig in which the model differs from it. "
            f"Sizes: {', '.join(AlbertConfig.names())}. With --init-from, remove `model`: the "
            "weights determine it.",
        ]
        # A rate that follows from model and batch still does, if the user changes them in the file.
        optimizer = config.chosen_optimizer().replace(lr=config.optimizer.lr)
        model = {"size": config.size} | config.model
        config = config.replace(optimizer=optimizer, model=model)
    comments = [line for text in about for line in _comment(text, "")]
    return "\n".join([*comments, *_section(config, "")]) + "\n"


def _section(settings, indent):
    """Returns the lines of settings: the schema of each as a comment, and its value."""
    values = settings.model_dump(mode="json")
    lines = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        lines.append("")
        if isinstance(value, Settings):
            lines += [f"{indent}{name}:", *_section(value, f"{indent}  ")]
        else:
            lines += _comment(_schema(field), indent)
            text = yaml.safe_dump(
                values[name], default_flow_style=True, width=10**6, allow_unicode=True
            )
            lines.append(f"{indent}{name}: {text.removesuffix(_END).strip()}")
    return lines


def _comment(text, indent):
    start = f"{indent}# "
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _schema(field):
    """Returns what a field is: its description, its choices, and what a missing value means."""
    text = field.description or ""
    kinds = (field.annotation, *get_args(field.annotation))
    choices = [str(one) for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    if choices:
        text += f" One of: {', '.join(choices)}."
    how = (field.json_schema_extra or {}).get("option", {})
    if "default_text" in how and field.default is None:
        text += f" null means: {how['default_text']}."
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Settings):  # of a list of settings
            text += f" Keys: {', '.join(kind.model_fields)}."
    return re.sub(r"\bNone\b", "null", text)  # Python's and YAML's name of a missing value
