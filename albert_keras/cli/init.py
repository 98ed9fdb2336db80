"""`albert-keras init`."""

import enum
from pathlib import Path

from albert_keras.cli.arguments import check_records, check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.output import shell
from albert_keras.config_files.initial import (
    DATA,
    FILE_KINDS,
    data_file,
    finetuning_file,
    pretraining_file,
    write_new,
)
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError

Kind = enum.Enum("Kind", {name: name for name in FILE_KINDS}, type=str)  # type: ignore[misc]


@command()
def init(
    kind: Kind,
    data: Path | None = None,
    tokenizer: Path | None = None,
    out: Path | None = None,
    config: str | None = None,
    assignments: list[str] | None = None,
):
    """Write a file of all settings of a command, each explained, for your data.

    KIND is data (for `data build`), pretrain, finetune, distill or distill-task. The file is for
    the option --config of the command; each setting can also be given as --set KEY=VALUE.

    Examples:
      albert-keras init pretrain --data records/ --set model.size=albert-mini --out run.yaml
      albert-keras init finetune --set task.name=classification --set task.train=mail.csv \\
          --set task.text=body --set task.label=folder --tokenizer runs/books --out mail.yaml
      albert-keras init data --config bert --out data.yaml

    Options:
      kind <KIND>: Command that the file is for.
      data: Folder of records to adapt the settings of pretrain or distill to.
      tokenizer: Tokenizer, or a run or an export that contains one, to choose the length of the
        rows of a task.
      out FILE (KIND.yaml): File to write; it must not exist.
      config FILE: File or recipe of settings to start from; for data a preset: albert, reference,
        bert or roberta.
      assignments
    """
    chosen = FILE_KINDS[kind.value]
    out = out or Path(f"{chosen.name}.yaml")
    is_task = "task" in chosen.config.model_fields
    for name, value, fits in (
        ("data", data, chosen.adapts_to_records),
        ("tokenizer", tokenizer, is_task),
    ):
        if value is not None and not fits:
            raise InputError(f"`--{name}` has no effect on settings for {chosen.name}.")
    if chosen is DATA:
        values = read_values(None, assignments, kind=None)
        content = data_file(PretrainingDataConfig.preset(config or "albert", **values), out.name)
        return _written(chosen, out, content)
    values = read_values(config, assignments, "finetuning" if is_task else "pretraining")
    if is_task and "name" not in (values.get("task") or {}):
        raise InputError(
            "`--set task.name=...` is required. See `albert-keras finetune --help` for the tasks."
        )
    settings = chosen.config.of(values)
    if is_task:
        check_task_files(settings.task)
        from albert_keras.formats.open_model import load_tokenizer

        loaded = None if tokenizer is None else load_tokenizer(tokenizer)
        return _written(chosen, out, finetuning_file(settings, loaded, out.name))
    check_records(data)
    return _written(chosen, out, pretraining_file(settings, data, out.name), data)


def _written(kind, out, content, data=None):
    write_new(out, content)
    others = kind.others.split()
    if data is not None:
        others[others.index("--data") + 1] = data
    values = {"path": out, "facts": content.facts}
    lines = [
        *content.facts,
        f"{out}: all settings of `albert-keras {kind.command}`",
        f"next: {shell('albert-keras', *kind.command.split(), '--config', out, *others)}",
    ]
    return Output(values, lines)
