"""`albert-keras init`."""

import enum
from pathlib import Path

from albert_keras.cli.arguments import check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.output import shell
from albert_keras.config_files.initial import FILE_KINDS, settings_file
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_writable, whole_file

Kind = enum.Enum("Kind", {name: name for name in FILE_KINDS}, type=str)  # type: ignore[misc]


@command()
def init(
    kind: Kind,
    out: Path | None = None,
    config: str | None = None,
    assignments: list[str] | None = None,
):
    """Write a file of all settings of a command, each explained.

    KIND is data (for `data build`), pretrain, finetune, distill or distill-task. The file is for
    the option --config of the command; each setting can also be given as --set KEY=VALUE.

    Examples:
      albert-keras init pretrain --set model.size=albert-mini --out run.yaml
      albert-keras init finetune --set task.name=classification --set task.train=mail.csv \\
          --set task.text=body --set task.label=folder --out mail.yaml
      albert-keras init data --config bert --out data.yaml

    Options:
      kind <KIND>: Command that the file is for.
      out FILE (KIND.yaml): File to write; it must not exist.
      config FILE: File or recipe of settings to start from; for data a preset: albert, reference,
        bert or roberta.
      assignments
    """
    chosen = FILE_KINDS[kind.value]
    out = out or Path(f"{kind.value}.yaml")
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
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(out) as temporary:
        temporary.write_text(text, encoding="utf-8")
    words = [*chosen.command.split(), "--config", out, *chosen.others.split()]
    lines = [
        f"{out}: all settings of `albert-keras {chosen.command}`",
        f"next: {shell('albert-keras', *words)}",
    ]
    return Output({"path": out}, lines)
