"""`albert-keras pretrain`."""

import re
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.arguments import check_records, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import (
    AlbertConfigFile,
    Assignments,
    ConfigFile,
    FromStep,
    TokenizerOfWeights,
    refuse,
)
from albert_keras.cli.output import shell
from albert_keras.formats.detection import detect
from albert_keras.report import percent
from albert_keras.training.config import PretrainingConfig


@command(
    config=PretrainingConfig,
    shown="size steps time_budget batch_size lr seed masks precision strategy "
    "checkpoint_every evaluate_every",
)
def pretrain(
    context: Context,
    data: Annotated[Path, Option()],
    out: Annotated[Path, Option()],
    flags,
    init_from: Annotated[str | None, Option(metavar="PATH", show_default="random weights")] = None,
    from_step: FromStep = None,
    albert_config: AlbertConfigFile = None,
    tokenizer: TokenizerOfWeights = None,
    eval_data: Path | None = None,
    dry_run: bool = False,
    config: ConfigFile = None,
    assignments: Assignments = None,
):
    """Pre-train a model on records, or resume an interrupted run.

    `albert-keras init pretrain` lists all settings, for --set and --config.

    Examples:
      albert-keras pretrain --data records/ --size albert-mini --steps 2000 --out runs/books
      albert-keras pretrain --data records/ --config albert-cpu-30-minutes --out runs/books
      albert-keras pretrain --data records/ --init-from runs/books --config continue \\
          --out runs/more

    Args:
      data: Folder of records.
      out: Folder of the run; an interrupted run is resumed.
      init_from: Run, checkpoint, export, name of a shipped model, hf://OWNER/NAME, .keras file or
        model of another program whose model and weights to start from, with a new optimizer.
      eval_data: Folder of held-out records to evaluate on during training.
      dry_run: Run a few steps, report memory and time, and keep nothing.
    """
    settings = PretrainingConfig.of(read_values(config, assignments), **flags)
    check_records(data, eval_data, *(stage.data for stage in settings.stages))
    if init_from is not None:
        init_from = detect(init_from)
    initial = None
    if init_from is None:
        of_weights = ("from_step", "albert_config", "tokenizer")
        refuse(context, of_weights, "requires `--init-from`, which is not given.")
    else:
        from albert_keras.formats.open_weights import open_weights

        initial = open_weights(init_from, from_step, albert_config, tokenizer)
    if dry_run:
        from albert_keras.dry_run import dry_run as run_trial

        trial = run_trial(data, out, settings, eval_data, initial)
        return Output(trial, trial.lines())
    from albert_keras.training.pretrain import pretrain as train

    result = train(data, out, settings, eval_data, initial=initial)
    return Output(result, lines_of(result))


def lines_of(result):
    """Returns the end of a pre-training, a PretrainingResult, as text (list of str)."""
    path, report = result.path, result.report
    scores = ""
    if report:
        accuracy = percent(report["masked_lm_accuracy"])
        scores = f": loss {report['loss']:.3f}, masked-LM accuracy {accuracy}"
    return [
        f"step {result.step} after {result.seconds:.0f} s{scores}",
        f"run: {path}   page: {shell('albert-keras', 'runs', 'report', path)}   "
        f"live: {shell('tensorboard', '--logdir', path / 'tensorboard')}",
        f"next: {export_command(path)}",
    ]


def export_command(run):
    """Returns the command that exports a run, under a name that an export can have."""
    name = re.sub(r"[^a-z0-9_-]+", "-", run.absolute().name.lower()).strip("-_")[:64] or "model"
    return shell("albert-keras", "export", "--run", run, "--out", f"saved_models/{name}")
