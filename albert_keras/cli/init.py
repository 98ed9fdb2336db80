"""`albert-keras init ...`."""

import shlex
from pathlib import Path

from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import option
from albert_keras.cli.preflight import check_records, check_task_files
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError

app = App(
    help="Write a file of all settings, each explained, for your data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_OUT = "File to write; it must not exist."


@app.command()
@command(PretrainingConfig)
def pretrain(
    data: Path | None = option(
        None, "Folder of records to adapt the settings to.", shown="settings for any records"
    ),
    out: Path = option(Path("pretrain.yaml"), _OUT, metavar="FILE"),
    *,
    flags,
):
    """Write a file of settings for `albert-keras pretrain --config`.

    \b
    Example:
      albert-keras init pretrain --data records/ --size albert-mini --out run.yaml
    """
    check_records(data)
    config = PretrainingConfig.of({}, **flags)
    from albert_keras.config_files.initial import pretraining_file

    records = "..." if data is None else shlex.quote(str(data))
    use = f"albert-keras pretrain --data {records} --config {shlex.quote(str(out))} --out runs/..."
    return _written(out, pretraining_file(config, data, out.name), use)


@app.command()
@command(FinetuneConfig)
def finetune(
    out: Path = option(Path("finetune.yaml"), _OUT, metavar="FILE"),
    *,
    flags,
    tokenizer: Path | None = option(
        None,
        "Tokenizer, or a run or an export that contains one, used to choose the length of rows.",
        shown="the usual length of the task",
    ),
):
    """Write a file of settings for `albert-keras finetune --config`.

    \b
    Example:
      albert-keras init finetune --task classification --train mail.csv --text body \\
          --label folder --tokenizer runs/books --out mail.yaml
    """
    use = f"albert-keras finetune --config {shlex.quote(str(out))} --from ... --out runs/..."
    return _for_task(FinetuneConfig, flags, out, tokenizer, use)


@app.command()
@command(DistillationConfig)
def distill(
    data: Path | None = option(
        None, "Folder of records to adapt the settings to.", shown="settings for any records"
    ),
    out: Path = option(Path("distill.yaml"), _OUT, metavar="FILE"),
    *,
    flags,
):
    """Write a file of settings for `albert-keras distill --data ... --config`.

    \b
    Example:
      albert-keras init distill --data records/ --student distilbert-mini --out student.yaml
    """
    check_records(data)
    config = DistillationConfig.of({}, **flags)
    from albert_keras.config_files.initial import pretraining_file

    records = "..." if data is None else shlex.quote(str(data))
    use = f"albert-keras distill --teacher ... --data {records} --config {shlex.quote(str(out))}"
    return _written(out, pretraining_file(config, data, out.name), f"{use} --out runs/...")


@app.command("distill-task")
@command(TaskDistillationConfig)
def distill_task(
    out: Path = option(Path("distill-task.yaml"), _OUT, metavar="FILE"),
    *,
    flags,
    tokenizer: Path | None = option(
        None,
        "Tokenizer, or a run or an export that contains one, used to choose the length of rows.",
        shown="the usual length of the task",
    ),
):
    """Write a file of settings for `albert-keras distill --config`, for a task.

    \b
    Example:
      albert-keras init distill-task --task classification --train mail.csv --text body \\
          --label folder --tokenizer runs/books --out student.yaml
    """
    use = f"albert-keras distill --teacher ... --config {shlex.quote(str(out))} --from ..."
    return _for_task(TaskDistillationConfig, flags, out, tokenizer, f"{use} --out runs/...")


@app.command()
@command(PretrainingDataConfig)
def data(
    out: Path = option(Path("data.yaml"), _OUT, metavar="FILE"),
    *,
    flags,
    preset: str = option("albert", "Settings to start from: albert, reference, bert or roberta."),
):
    """Write a file of settings for `albert-keras data build --config`.

    \b
    Example:
      albert-keras init data --preset bert --out data.yaml
    """
    config = PretrainingDataConfig.preset(preset, **flags)
    from albert_keras.config_files.initial import data_file

    use = f"albert-keras data build --config {shlex.quote(str(out))} --corpus ..."
    return _written(out, data_file(config, out.name), f"{use} --tokenizer ... --out ...")


def _for_task(kind, flags, out, tokenizer, next_command):
    if "task" not in flags:
        raise InputError("`--task` is required. See `albert-keras finetune --help` for the tasks.")
    config = kind.of({}, **flags)
    check_task_files(config.task)
    from albert_keras.config_files.initial import finetuning_file
    from albert_keras.model_tokenizer import load_tokenizer

    loaded = None if tokenizer is None else load_tokenizer(tokenizer)
    return _written(out, finetuning_file(config, loaded, out.name), next_command)


def _written(out, content, next_command):
    from albert_keras.config_files.check import check_file
    from albert_keras.config_files.initial import write_new

    write_new(out, content)
    count = check_file(out).settings
    values = {"path": out, "settings": count, "facts": content.facts}
    lines = [*content.facts, f"{out}: {count} settings, all of them shown", f"next: {next_command}"]
    return Output(values, lines)
