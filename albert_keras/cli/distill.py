"""`albert-keras distill`."""

from pathlib import Path

import typer

from albert_keras.cli.arguments import check_records, check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.parameters import refuse
from albert_keras.cli.pretrain import lines_of
from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.formats.detection import detect
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import options_of

_RECORDS = "albert_keras.distillation.distill:distill"
_TASK = "albert_keras.distillation.task:distill_task"


class _Options(DistillationConfig):
    """The options of the command, for both kinds of distillation."""

    task: TaskConfig


@command(_RECORDS, _TASK, config=_Options, resumes=True)
def distill(
    context: typer.Context,
    call,
    teacher: str,
    out: Path,
    *,
    flags,
    data: Path | None = None,
    config: Path | None = None,
    assignments: list[str] | None = None,
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

    Options:
      teacher PATH: Trained model to learn from: a run, checkpoint, export, name of a shipped model,
        .keras file or model of another program; for a task, a fine-tuning.
      out: Folder of the run; an interrupted run is resumed.
      data: Folder of records to pre-train on, instead of a task.
      size
      task data_dir train
      origin --from PATH: Pre-trained weights of the student for a task, instead of --student.
      steps time_budget batch_size lr seed
      temperature
      ~teacher_step (the newest): Checkpoint of the teacher's run: a number or `best`; not for a
        task.
      ~albert_config
      ~tokenizer: Tokenizer, if the weights have none: a folder, .model file or vocab.txt.
      eval_data: Folder of held-out records to evaluate on during training.
      allow_changes config assignments
    """
    values = read_values(config, assignments, kind="finetuning" if data is None else "distillation")
    on_task = "task" in flags or "task" in values
    if on_task == (data is not None):
        raise InputError(
            "A distillation requires either records (--data) or a task (--task). Received: "
            f"{'both' if on_task else 'none'} of them."
        )
    if on_task:
        problem = "does not apply to a distillation on a task."
        refuse(
            context, flags.keys() - options_of(TaskDistillationConfig).keys() - {"size"}, problem
        )
        return _on_task(call.to(_TASK, problem), teacher, out, flags, values)
    problem = "does not apply to a distillation on records."
    refuse(context, flags.keys() - options_of(DistillationConfig).keys(), problem)
    call = call.to(_RECORDS, problem)
    settings = DistillationConfig.of(values, **flags)
    check_records(data, call.given.get("eval_data"), *(stage.data for stage in settings.stages))
    teacher = detect(teacher)
    settings.albert_config(vocab_size=1)  # checks the depths of the stages
    result = call(teacher, data, out, settings)
    return Output(result, lines_of(result))


def _on_task(call, teacher, out, flags, values):
    student = flags.pop("size", None)
    if student is not None:
        AlbertConfig.from_name(student)  # checks the name
    settings = TaskDistillationConfig.of(values, **flags)
    teacher = detect(teacher, ("run", "fine-tuning"), "A teacher on a task is a fine-tuning.")
    if "origin" in call.given:
        call.given["origin"] = detect(call.given["origin"])
    check_task_files(settings.task)
    from albert_keras.tasks.results import as_json, lines

    result = call(teacher, out, settings, student=student)
    return Output(as_json(result), [*lines(result), f"all results: {out}/results.json"])
