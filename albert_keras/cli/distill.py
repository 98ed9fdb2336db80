"""`albert-keras distill`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from albert_keras.cli.arguments import check_records, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import (
    AlbertConfigFile,
    Assignments,
    ConfigFile,
    TokenizerOfWeights,
)
from albert_keras.cli.pretrain import lines_of
from albert_keras.distillation.config import DistillationConfig
from albert_keras.formats.detection import detect


@command(
    config=DistillationConfig,
    shown="size steps time_budget batch_size lr seed temperature",
)
def distill(
    teacher: Annotated[str, Option(metavar="PATH")],
    data: Annotated[Path, Option()],
    out: Annotated[Path, Option()],
    flags,
    teacher_step: Annotated[str | None, Option(show_default="the newest", hidden=True)] = None,
    albert_config: AlbertConfigFile = None,
    tokenizer: TokenizerOfWeights = None,
    eval_data: Path | None = None,
    config: ConfigFile = None,
    assignments: Assignments = None,
):
    """Pre-train a small model, the student, with a trained one as its teacher.

    The result is an ordinary run. `albert-keras init distill` lists all settings, for --set and
    --config.

    Example:
      albert-keras distill --teacher runs/bert --student distilbert-mini --data records/ \\
          --out runs/student

    Args:
      teacher: Trained model to learn from: a run, checkpoint, export, name of a shipped model,
        hf://OWNER/NAME, .keras file or model of another program.
      out: Folder of the run; an interrupted run is resumed.
      data: Folder of records.
      teacher_step: Checkpoint of the teacher's run: a number or `best`.
      eval_data: Folder of held-out records to evaluate on during training.
    """
    settings = DistillationConfig.of(read_values(config, assignments), **flags)
    check_records(data, eval_data, *(stage.data for stage in settings.stages))
    teacher = detect(teacher)
    settings.albert_config(vocab_size=1)  # checks the depths of the stages
    from albert_keras.distillation.distill import distill as distill_on_records

    result = distill_on_records(
        teacher,
        data,
        out,
        settings,
        eval_data,
        teacher_step=teacher_step,
        albert_config=albert_config,
        tokenizer=tokenizer,
    )
    return Output(result, lines_of(result))
