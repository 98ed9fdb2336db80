"""`albert-keras distill`."""

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.arguments import check_records, check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import (
    AlbertConfigFile,
    AllowChanges,
    Assignments,
    ConfigFile,
    TokenizerOfWeights,
    refuse,
)
from albert_keras.cli.pretrain import lines_of
from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.formats.detection import detect
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import options_of

#: Options that have no settings and apply to one kind of distillation.
_OF_RECORDS = {"eval_data", "teacher_step", "albert_config", "tokenizer"}
_OF_TASKS = {"origin"}


class _Options(DistillationConfig):
    """The options of the command, for both kinds of distillation."""

    task: TaskConfig


@command(
    config=_Options,
    resumes=True,
    shown="size task data_dir train steps time_budget batch_size lr seed temperature",
)
def distill(
    context: Context,
    *,
    teacher: Annotated[str, Option(metavar="PATH")],
    out: Annotated[Path, Option()],
    data: Path | None = None,
    flags,
    origin: Annotated[Path | None, Option("--from")] = None,
    teacher_step: Annotated[str | None, Option(show_default="the newest", hidden=True)] = None,
    albert_config: AlbertConfigFile = None,
    tokenizer: TokenizerOfWeights = None,
    eval_data: Path | None = None,
    allow_changes: AllowChanges = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
):
    """Train a small model, the student, with a trained one as its teacher.

    On records it is pre-trained, on a task it is fine-tuned, with the options of `pretrain` and
    `finetune`. The result is an ordinary run. `albert-keras init distill` and `init distill-task`
    list all settings, for --set and --config.

    Examples:
      albert-keras distill --teacher runs/bert --student distilbert-mini --data records/ \\
          --out runs/student
      albert-keras distill --teacher runs/sst-2 --from runs/student --task sst-2 \\
          --data-dir glue/ --out runs/small-sst-2

    Args:
      teacher: Trained model to learn from: a run, checkpoint, export, name of a shipped model,
        hf://OWNER/NAME, .keras file or model of another program; for a task, a fine-tuning.
      out: Folder of the run; an interrupted run is resumed.
      data: Folder of records to pre-train on, instead of a task.
      origin: Pre-trained weights of the student for a task, instead of --student.
      teacher_step: Checkpoint of the teacher's run: a number or `best`; not for a task.
      eval_data: Folder of held-out records to evaluate on during training.
    """
    values = read_values(config, assignments, kind="finetuning" if data is None else "pretraining")
    on_task = "task" in flags or "task" in values
    if on_task == (data is not None):
        raise InputError(
            "A distillation requires either records (--data) or a task (--task). Received: "
            f"{'both' if on_task else 'none'} of them."
        )
    if on_task:
        others = flags.keys() - options_of(TaskDistillationConfig).keys() - {"size"}
        refuse(context, others | _OF_RECORDS, "does not apply to a distillation on a task.")
        return _on_task(teacher, out, flags, values, origin, allow_changes)
    others = flags.keys() - options_of(DistillationConfig).keys()
    refuse(context, others | _OF_TASKS, "does not apply to a distillation on records.")
    settings = DistillationConfig.of(values, **flags)
    check_records(data, eval_data, *(stage.data for stage in settings.stages))
    teacher = detect(teacher)
    settings.albert_config(vocab_size=1)  # checks the depths of the stages
    from albert_keras.distillation.distill import distill as distill_on_records

    weights = {"albert_config": albert_config, "tokenizer": tokenizer}
    result = distill_on_records(
        *(teacher, data, out, settings, eval_data, allow_changes or ()),
        teacher_step=teacher_step,
        **weights,
    )
    return Output(result, lines_of(result))


def _on_task(teacher, out, flags, values, origin, allow_changes):
    student = flags.pop("size", None)
    if student is not None:
        AlbertConfig.from_name(student)  # checks the name
    settings = TaskDistillationConfig.of(values, **flags)
    teacher = detect(teacher, ("run", "fine-tuning"), "A teacher on a task is a fine-tuning.")
    if origin is not None:
        origin = detect(origin)
    check_task_files(settings.task)
    from albert_keras.distillation.task import distill_task
    from albert_keras.tasks.results import as_json, lines

    result = distill_task(
        teacher, out, settings, origin, student, allow_changes=allow_changes or ()
    )
    return Output(as_json(result), [*lines(result), f"all results: {out}/results.json"])
