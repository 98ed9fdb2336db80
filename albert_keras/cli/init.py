"""`albert-keras init`: files of all settings of a command, to start from."""

import inspect
import re
import textwrap
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

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
    text = settings_file(chosen, settings, out.name)
    with whole_text(out) as file:
        file.write(text)
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
    header = [
        f"All settings of `albert-keras {kind.command}`, with the values in effect. Options of the",
        "command line take precedence.",
        "",
        f"Use: albert-keras {kind.command} --config {name} {kind.others}",
    ]
    if kind.command == "pretrain":
        header.append("With --init-from, remove the section `model`: the weights determine it.")
    lines = [f"# {line}".rstrip() for line in header]
    return "\n".join([*lines, *_section(config, 0)]) + "\n"


def _section(settings, depth):
    lines = []
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Settings):
            text = inspect.getdoc(type(value)).splitlines()[0]
            lines += ["", *_comment(text, depth), f"{'  ' * depth}{name}:"]
            lines += _section(value, depth + 1)
        elif isinstance(settings, PretrainingConfig) and name == "model":
            lines += ["", *_model(settings)]
        elif isinstance(settings, PretrainingConfig) and name == "stages":
            lines += ["", *_stages(value)]
        else:
            lines += ["", *_comment(_explanation(field), depth)]
            lines.append(f"{'  ' * depth}{name}: {_plain(value)}")
    # The first key of a section follows its heading.
    return lines[1:] if depth and lines and not lines[0] else lines


def _explanation(field):
    text = field.description or ""
    annotation = field.annotation
    kinds = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    kinds = [kind for kind in kinds if kind is not NoneType]
    if len(kinds) == 1 and get_origin(kinds[0]) is Literal:
        text += f" One of: {', '.join(map(str, get_args(kinds[0])))}."
    how = (field.json_schema_extra or {}).get("option", {})
    if "default_text" in how and field.default is None:
        text += f" null means: {how['default_text']}."
    return text


def _model(settings):
    """Returns the lines of `model`; what follows from the size is written as a comment."""
    shape = AlbertConfig.from_name(settings.size)
    given = {name: value for name, value in settings.model.items() if name != "size"}
    text = f"The model. One of: {', '.join(AlbertConfig.names())}."
    lines = [*_comment(text, 0), "model:", f"  size: {settings.size}"]
    lines += ["", *_comment(f"The shape of {settings.size}; remove a `#` to change a value.", 1)]
    for name, text in _attributes(AlbertConfig).items():
        if name not in _NOT_SET:
            lines += ["", *_comment(text, 1)]
            value = given.get(name, getattr(shape, name))
            lines.append(f"  {'' if name in given else '# '}{name}: {_plain(value)}")
    return lines


def _stages(stages):
    """Returns the lines of `stages`, with the keys of a stage."""
    text = (
        "Consecutive parts of the run that differ in records, batch size or masks; [] for a "
        "run without stages. The keys of a stage:"
    )
    lines = _comment(text, 0)
    for name, field in StageConfig.model_fields.items():
        lines += _comment(f"  {name}: {field.description}", 0, "      ")
    values = [stage.model_dump(mode="json", exclude_unset=True) for stage in stages]
    return [*lines, f"stages: {_plain(values)}"]


def _attributes(config: type) -> dict[str, str]:
    """Returns the descriptions of fields from the part "Attributes:" of a docstring, by name."""
    part = inspect.getdoc(config).split("Attributes:\n")[1].split("\n\n")[0]
    entries = re.findall(r"^ {4}(\w+): \w+\. ((?:.|\n {8})+)", part, re.MULTILINE)
    return {name: re.sub(r"\s+", " ", text).strip() for name, text in entries}


def _comment(text, depth, indent=""):
    start = f"{'  ' * depth}# "
    return textwrap.wrap(
        re.sub(r"\bNone\b", "null", text),  # Python's and YAML's name of a missing value
        _WIDTH,
        initial_indent=start,
        subsequent_indent=start + indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(value: Any) -> str:
    """Returns a value as YAML on one line."""
    value = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("...\n").strip()
