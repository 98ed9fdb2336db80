"""`albert-keras finetune`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from albert_keras.cli.arguments import check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import (
    AlbertConfigFile,
    Assignments,
    ConfigFile,
    FromStep,
    TokenizerOfWeights,
)
from albert_keras.cli.output import shell
from albert_keras.formats.detection import ANY_MODEL, detect
from albert_keras.tasks.finetune_config import FinetuneConfig
from data_pipeline.errors import InputError


@command(
    config=FinetuneConfig,
    shown="task data_dir train dev text pair label max_seq_length epochs time_budget "
    "batch_size lr seed",
)
def finetune(
    origin: Annotated[str, Option("--from", metavar="PATH")],
    out: Annotated[Path, Option()],
    flags,
    seeds: Annotated[str, Option(metavar="N")] = "1",
    cross_validate: bool = False,
    from_step: FromStep = None,
    albert_config: AlbertConfigFile = None,
    tokenizer: TokenizerOfWeights = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
):
    """Fine-tune a model on a task and evaluate it.

    A linear model on counts of words is scored as well, for comparison.
    `albert-keras init finetune` lists all settings, for --set and --config.

    Examples:
      albert-keras finetune --task sst-2 --data-dir glue/ --from albert-mini-en --out runs/sst-2
      albert-keras finetune --task classification --train mail.csv --text body --label folder \\
          --from runs/books --out runs/mail
      albert-keras finetune --config mnli --data-dir glue/ --from albert-base/ --out runs/mnli

    Args:
      origin: Run, checkpoint, export, name of a shipped model, hf://OWNER/NAME, .keras file or
        model of another program to start from; `random` for random weights.
      out: Output folder; an interrupted fine-tuning is resumed.
      seeds: Number of trainings with different seeds, or the seeds: 3,14,15.
      cross_validate: Train five times more, each time without a fifth of the rows, and judge by the
        answers to all rows, where too few are held out for a score.
    """
    values = read_values(config, assignments, kind="finetuning")
    task = values.get("task") or {}
    if "task" not in flags and isinstance(task, dict) and "name" not in task:
        raise InputError(
            "`--task` is required, unless --config names a task. "
            "See `albert-keras finetune --help` for the tasks."
        )
    settings = FinetuneConfig.of(values, **flags)
    numbers = settings.seeds_of(seeds)
    if origin != "random":
        origin = detect(origin, wanted=f"{ANY_MODEL} `random` stands for random weights.")
    check_task_files(settings.task)
    from albert_keras.tasks.finetune import finetune as finetune_model
    from albert_keras.tasks.results import as_json, first_split, lines, verdict_of

    weights = {"from_step": from_step, "albert_config": albert_config, "tokenizer": tokenizer}
    result = finetune_model(
        origin,
        out,
        settings,
        numbers,
        cross_validate,
        **weights,
    )
    files = result.files[first_split(result)]
    picture = [f"confusions: {files['confusions']}"] if "confusions" in files else []
    verdict = verdict_of(result)
    next_step = f"{shell('albert-keras', 'predict', out)} {question_of(settings.task)}"
    if verdict is not None and verdict.is_better is False:
        next_step = "what helps is in docs/answers.md, “My model lost to the bag of words”"
    shown = [
        *lines(result),
        "   ".join([f"errors: {files['errors']}", *picture]),
        f"all results: {out}/results.json   page: {shell('albert-keras', 'runs', 'report', out)}   "
        f"live: {shell('tensorboard', '--logdir', out)}",
        f"next: {next_step}",
    ]
    return Output(as_json(result), shown)


def question_of(task):
    """Returns the arguments of `albert-keras predict` for a model of this task (TaskConfig)."""
    from albert_keras.tasks.kinds import build_task

    options = {
        "pair": " --pair TEXT",
        "question": " --question TEXT",
        "options": " --option TEXT --option TEXT",
    }
    return "TEXT" + "".join(options.get(field, "") for field in build_task(task).fields)
