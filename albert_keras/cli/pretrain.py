"""`albert-keras pretrain`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def _option(*names, **words):
    return typer.Option(*names, show_default=words.pop("default", False), **words)


def pretrain(
    data: Annotated[Path, _option(help="Folder of records.")],
    out: Annotated[Path, _option(help="Folder of the run; an interrupted one goes on.")],
    size: Annotated[
        str | None, _option(help="Named model, such as albert-base.", default="albert-mini")
    ] = None,
    steps: Annotated[int | None, _option(help="Optimizer steps.", default="2000")] = None,
    batch_size: Annotated[int | None, _option(help="Global batch size.", default="32")] = None,
    lr: Annotated[
        str | None,
        _option(help="Peak learning rate; auto: by batch size.", default="by model size"),
    ] = None,
    seed: options.Seed = None,
    strategy: options.Strategy = None,
    precision: Annotated[
        str | None, _option(help="auto, float32 or mixed_bfloat16.", default="auto")
    ] = None,
    checkpoint_every: Annotated[
        int | None, _option(help="Steps between checkpoints.", default="500")
    ] = None,
    masks: Annotated[
        str | None,
        _option(help="static (in the records), dynamic (anew each epoch) or auto.", default="auto"),
    ] = None,
    config: options.ConfigFile = None,
    assignments: options.Set = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Pre-train a model on records; the same command goes on with an interrupted run.

    \b
    Example:
      albert-keras pretrain --data records/ --size albert-mini --steps 2000 --out runs/books
    """
    start(verbose, debug)
    from albert_keras.cli.arguments import read_values
    from albert_keras.training.config import PretrainingConfig

    settings = PretrainingConfig.of(
        read_values(config, assignments),
        size=size,
        steps=steps,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        strategy=strategy,
        precision=precision,
        checkpoint_every=checkpoint_every,
        masks=masks,
    )
    from albert_keras.training.pretrain import pretrain as pretrain_model

    result = pretrain_model(data, out, settings)
    report = result.report
    show(
        result,
        [
            f"step {result.step} after {result.seconds:.0f} s: loss {report['loss']:.3f}, "
            f"masked LM accuracy {report['masked_lm_accuracy']:.1%}",
            f"run: {result.path}   curves: {result.path}/curves.png   "
            f"live: tensorboard --logdir {result.path}/tensorboard",
            f"next: albert-keras export --run {result.path} --out saved_models/{result.path.name}",
        ],
        as_json,
    )
