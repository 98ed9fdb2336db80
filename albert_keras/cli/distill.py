"""`albert-keras distill`."""

from pathlib import Path

from albert_keras.cli import options
from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import option
from albert_keras.cli.preflight import check_origin, check_records
from albert_keras.cli.pretrain import lines_of
from albert_keras.distillation.config import DistillationConfig


@command(DistillationConfig, resumes=True)
def distill(
    teacher: str = option(
        ...,
        "Trained model to learn from: a run, checkpoint, export, name of a shipped model, .keras "
        "file or model of another program.",
        metavar="PATH",
    ),
    data: Path = option(..., "Folder of records."),
    out: Path = option(..., "Folder of the run; an interrupted run is resumed."),
    *,
    flags,
    teacher_step: str | None = option(
        None, "Checkpoint of the teacher's run: a number or `best`.", shown="the newest"
    ),
    albert_config: str | None = options.ALBERT_CONFIG,
    tokenizer: Path | None = options.TOKENIZER_FALLBACK,
    cache_teacher: Path | None = option(
        None,
        "Folder of the teacher's predictions, which is written if it does not exist.",
        shown="the teacher runs in each step",
    ),
    eval_data: Path | None = option(
        None, "Folder of held-out records to evaluate on during training."
    ),
    allow_change: list[str] | None = options.ALLOW_CHANGE,
    config: Path | None = options.CONFIG,
    assignments: list[str] | None = options.SET,
):
    """Pre-train a small model on records with a trained one as its teacher.

    The result is an ordinary run of pre-training.

    \b
    Examples:
      albert-keras distill --teacher runs/bert --student distilbert-mini --data records/ \\
          --out runs/student
      albert-keras distill --teacher runs/bert --student albert-mini --data records/ \\
          --cache-teacher logits/ --steps 4000 --out runs/student
    """
    settings = DistillationConfig.of(read_values(config, assignments), **flags)
    check_records(data, eval_data, *(stage.data for stage in settings.stages))
    check_origin(teacher)
    settings.albert_config(vocab_size=1)  # checks the depths of the stages
    from albert_keras.distillation.distill import distill as distill_model

    result = distill_model(
        teacher,
        data,
        out,
        settings,
        eval_data,
        tuple(allow_change or ()),
        teacher_step=teacher_step,
        albert_config=albert_config,
        tokenizer=tokenizer,
        cache=cache_teacher,
    )
    return Output(result, lines_of(result))
