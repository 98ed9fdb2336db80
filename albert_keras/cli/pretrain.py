"""`albert-keras pretrain`."""

from pathlib import Path
from typing import Annotated

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def pretrain(
    data: Annotated[Path, options.option(help="Folder of records.")],
    out: Annotated[Path, options.option(help="Folder of the run; an interrupted one goes on.")],
    size: Annotated[
        str | None, options.option(help="Named model, such as albert-base.", default="albert-mini")
    ] = None,
    init_from: Annotated[
        str | None,
        options.option(
            metavar="PATH",
            help="Run, checkpoint, export or .keras file to go on from, with a new optimizer; "
            "the model is the one there.",
        ),
    ] = None,
    from_step: Annotated[
        str | None,
        options.option(help="Checkpoint of --init-from: a number or `best`.", default="the newest"),
    ] = None,
    albert_config: Annotated[
        str | None,
        options.option(
            metavar="FILE", help="Shape of the model, where --init-from has none; or its name."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        options.option(
            help="Tokenizer, where --init-from has none: folder, .model file or vocab.txt."
        ),
    ] = None,
    steps: Annotated[int | None, options.option(help="Optimizer steps.", default="2000")] = None,
    batch_size: Annotated[
        int | None, options.option(help="Global batch size.", default="32")
    ] = None,
    lr: Annotated[
        str | None,
        options.option(help="Peak learning rate; auto: by batch size.", default="by model size"),
    ] = None,
    seed: options.Seed = None,
    strategy: options.Strategy = None,
    precision: options.Precision = None,
    accumulation_steps: options.AccumulationSteps = None,
    recompute: options.Recompute = None,
    steps_per_execution: options.StepsPerExecution = None,
    checkpoint_every: Annotated[
        int | None, options.option(help="Steps between checkpoints.", default="500")
    ] = None,
    masks: Annotated[
        str | None,
        options.option(
            help="static (in the records), dynamic (anew each epoch) or auto.", default="auto"
        ),
    ] = None,
    eval_data: Annotated[
        Path | None,
        options.option(help="Folder of held-out records, scored while training goes on."),
    ] = None,
    evaluate_every: Annotated[
        int | None, options.option(help="Steps between such scores.", default="1000")
    ] = None,
    time_budget: Annotated[
        str | None,
        options.option(
            help="End the whole schedule after this long, such as 8h, whatever --steps."
        ),
    ] = None,
    peak_tflops: Annotated[
        float | None,
        options.option(help="What a device can do at most, for MFU.", default="measured"),
    ] = None,
    allow_change: Annotated[
        list[str] | None,
        options.option(
            help="Go on although this setting or data is not what the run was begun with."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        options.option(
            "--dry-run", help="Try everything in little, tell memory and time, keep nothing."
        ),
    ] = False,
    config: options.ConfigFile = None,
    assignments: options.Set = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Pre-train a model on records; the same command goes on with an interrupted run.

    \b
    Examples:
      albert-keras pretrain --data records/ --size albert-mini --steps 2000 --out runs/books
      albert-keras pretrain --data records/ --init-from runs/books --config continue \\
          --out runs/more
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
        accumulation_steps=accumulation_steps,
        recompute=recompute,
        steps_per_execution=steps_per_execution,
        checkpoint_every=checkpoint_every,
        masks=masks,
        evaluate_every=evaluate_every,
        time_budget=time_budget,
        peak_tflops=peak_tflops,
    )
    initial = _initial(init_from, from_step, albert_config, tokenizer)
    if dry_run:
        from albert_keras.dry_run import dry_run as try_out

        trial = try_out(data, out, settings, eval_data, initial)
        show(trial, trial.lines(), as_json)
        return
    from albert_keras.training.pretrain import pretrain as pretrain_model

    result = pretrain_model(
        data, out, settings, eval_data, tuple(allow_change or ()), initial=initial
    )
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


def _initial(init_from, from_step, albert_config, tokenizer):
    """Finds the weights to begin with: InitialWeights, or None for random ones."""
    from data_pipeline.errors import InputError

    about = {"--from-step": from_step, "--albert-config": albert_config, "--tokenizer": tokenizer}
    given = [name for name, value in about.items() if value is not None]
    if init_from is None:
        if given:
            raise InputError(f"`{given[0]}` is about the weights of `--init-from`. Received: none.")
        return None
    if init_from == "random":
        raise InputError("`--init-from` should be a path; without it, weights are random.")
    from albert_keras.weights.initial_weights import open_weights

    return open_weights(init_from, from_step, albert_config, tokenizer)
