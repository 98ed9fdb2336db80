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
from albert_keras.distillation.config import DistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_writable, whole_text
from data_pipeline.settings import Settings

_WIDTH = 100


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
}


@command()
def init(
    kind: Literal[tuple(FILE_KINDS)],
    out: Annotated[Path | None, Option(metavar="FILE", show_default="KIND.yaml")] = None,
    config: Annotated[str | None, Option(metavar="FILE")] = None,
    assignments: Assignments = None,
):
    """Write a file of all settings of a command, each explained.

    KIND is data (for `data build`), pretrain, finetune or distill. The file is for the option
    --config of the command; each setting can also be given as --set KEY=VALUE.

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
    use = f"albert-keras {chosen.command} --config {shell(out)} {chosen.others}"
    with whole_text(out) as file:
        file.write(settings_file(settings, f"Use: {use}"))
    return Output({"path": out}, [f"{out}: all settings", f"next: {use}"])


def settings_file(settings: Settings, about: str) -> str:
    """Returns the content of a file of settings; read again, it gives the same settings.

    Args:
        settings: The settings that were chosen.
        about: A comment at its top.
    """
    return "\n".join([*_comment(about, ""), *_lines(settings, "")]) + "\n"


def _lines(settings, indent):
    """Yields the lines of settings: what each of them is as a comment, and its value."""
    values = settings.model_dump(mode="json")
    for name, field in type(settings).model_fields.items():
        yield ""
        section = getattr(settings, name)
        if isinstance(section, Settings):
            yield f"{indent}{name}:"
            yield from _lines(section, f"{indent}  ")
        else:
            yield from _comment(_meaning(field), indent)
            value = yaml.safe_dump({name: values[name]}, width=10**6, allow_unicode=True)
            yield from textwrap.indent(value.rstrip(), indent).split("\n")


def _comment(text, indent):
    start = f"{indent}# "
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=start)


def _meaning(field):
    """Returns the description of a field and its choices."""
    kinds = (field.annotation, *get_args(field.annotation))
    choices = [str(one) for kind in kinds if get_origin(kind) is Literal for one in get_args(kind)]
    listed = f" One of: {', '.join(choices)}." if choices else ""
    return re.sub(r"\bNone\b", "null", f"{field.description}{listed}")  # its name in YAML
