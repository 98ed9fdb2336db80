"""`albert-keras finetune`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start
from data_pipeline.errors import InputError


def finetune(
    origin: Annotated[
        str,
        options.option(
            "--from",
            metavar="PATH",
            help="Run, checkpoint, export or .keras file to begin from; random for none.",
        ),
    ],
    out: Annotated[
        Path, options.option(help="Folder to make; an interrupted fine-tuning goes on.")
    ],
    task: Annotated[
        str | None,
        options.option(
            help="A GLUE task, squad1, squad2 or race; or classification, pair, regression, "
            "tagging on own files."
        ),
    ] = None,
    data_dir: Annotated[Path | None, options.option(help="Folder of the official files.")] = None,
    train: Annotated[
        Path | None,
        options.option(help="Own training examples: .tsv, .csv, .jsonl; or CoNLL columns."),
    ] = None,
    dev: Annotated[
        Path | None,
        options.option(help="Own development examples.", default="a tenth of those of --train"),
    ] = None,
    text: Annotated[
        str | None, options.option(metavar="COLUMN", help="Column of the text, by name or number.")
    ] = None,
    pair: Annotated[
        str | None, options.option(metavar="COLUMN", help="Column of a second text.")
    ] = None,
    label: Annotated[
        str | None, options.option(metavar="COLUMN", help="Column of the label.")
    ] = None,
    epochs: Annotated[
        float | None, options.option(help="Passes over the training examples.", default="3")
    ] = None,
    steps: Annotated[
        int | None, options.option(help="Optimizer steps, instead of --epochs.")
    ] = None,
    batch_size: Annotated[
        int | None, options.option(help="Global batch size.", default="32")
    ] = None,
    lr: Annotated[
        str | None,
        options.option(help="Peak learning rate.", default="by model size, 2e-5 for base"),
    ] = None,
    max_seq_length: Annotated[
        int | None,
        options.option(help="Pieces of a row.", default="128; squad 384, race 512"),
    ] = None,
    seed: options.Seed = None,
    seeds: Annotated[
        str,
        typer.Option(
            metavar="N", help="How many trainings with different seeds; or the seeds: 3,14,15."
        ),
    ] = "1",
    random_baseline: Annotated[
        bool,
        typer.Option(help="Train the same model from random weights, too, to compare with."),
    ] = True,
    evaluate_every: Annotated[
        int | None,
        options.option(help="Steps between scores on --dev.", default="a tenth of the run"),
    ] = None,
    patience: Annotated[
        int | None,
        options.option(help="End after so many scores without a better one.", default="never"),
    ] = None,
    checkpoint_every: Annotated[
        int | None, options.option(help="Steps between checkpoints.", default="--evaluate-every")
    ] = None,
    strategy: options.Strategy = None,
    precision: options.Precision = None,
    accumulation_steps: options.AccumulationSteps = None,
    recompute: options.Recompute = None,
    steps_per_execution: options.StepsPerExecution = None,
    time_budget: Annotated[
        str | None, options.option(help="End each training after this long, such as 20m.")
    ] = None,
    from_step: Annotated[
        str | None,
        options.option(help="Checkpoint of --from: a number or `best`.", default="the newest"),
    ] = None,
    albert_config: Annotated[
        str | None,
        options.option(
            metavar="FILE", help="Shape of the model, where --from has none; or its name."
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        options.option(help="Tokenizer, where --from has none: folder, .model file or vocab.txt."),
    ] = None,
    cache: Annotated[
        Path | None,
        options.option(help="Folder of features, to use again.", default="OUT/features"),
    ] = None,
    allow_change: Annotated[
        list[str] | None,
        options.option(
            metavar="KEY", help="Go on although this setting or data is not what it was begun with."
        ),
    ] = None,
    config: options.ConfigFile = None,
    assignments: options.Set = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Fine-tune a model on a task and score it; or go on with an interrupted one.

    \b
    Examples:
      albert-keras finetune --task sst-2 --data-dir glue/ --from runs/books --out runs/sst-2
      albert-keras finetune --task classification --train mail.csv --text body --label folder \\
          --from runs/books --out runs/mail
      albert-keras finetune --config mnli --data-dir glue/ --from albert-base/ --out runs/mnli
    """
    start(verbose, debug)
    from albert_keras.cli.arguments import read_values
    from albert_keras.finetuning.config import FinetuneConfig

    values = read_values(config, assignments, kind="finetuning")
    for name, section in values.items():
        if not isinstance(section, dict):
            raise InputError(f"`{name}` should hold keys and values. Received: {section!r}.")
    if task is None and "name" not in values.get("task", {}):
        raise InputError(
            "`--task` should name a task, unless --config does. Received: none. "
            "See `albert-keras finetune --help`."
        )
    settings = FinetuneConfig.of(
        values,
        task=task,
        data_dir=data_dir and str(data_dir),
        train=train and str(train),
        dev=dev and str(dev),
        text=text,
        pair=pair,
        label=label,
        max_seq_length=max_seq_length,
        steps=steps,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        strategy=strategy,
        precision=precision,
        accumulation_steps=accumulation_steps,
        recompute=recompute,
        steps_per_execution=steps_per_execution,
        evaluate_every=evaluate_every,
        checkpoint_every=checkpoint_every,
        patience=patience,
        time_budget=time_budget,
    )
    seeds = _seeds(seeds)
    from albert_keras.finetuning.finetune import finetune as finetune_model
    from albert_keras.finetuning.result_table import lines
    from albert_keras.finetuning.results import as_json as plain
    from albert_keras.finetuning.results import best_seed, first_split

    result = finetune_model(
        origin,
        out,
        settings,
        seeds=seeds,
        random_baseline=random_baseline,
        from_step=from_step,
        albert_config=albert_config,
        tokenizer=tokenizer,
        cache=cache,
        allow_changes=tuple(allow_change or ()),
    )
    files = result.files[first_split(result)]
    picture = [f"{name}: {files[name]}" for name in ("confusions", "scores") if name in files]
    run = out / best_seed(result).path
    shown = [
        *lines(result),
        "   ".join([f"errors: {files['errors']}", *picture, f"curves: {run}/curves.png"]),
        f"all results: {out}/results.json   live: tensorboard --logdir {out}",
        f"next: albert-keras predict {shlex.quote(str(out))} {_question(settings.task)}",
    ]
    show(plain(result), shown, as_json)


def _question(task):
    """Returns how a model of a task (TaskConfig) is asked by `albert-keras predict`."""
    from albert_keras.tasks.glue.glue_tasks import GLUE_TASKS

    glue = GLUE_TASKS.get(task.name)
    if task.name == "race":
        return "TEXT --question TEXT --option TEXT --option TEXT"
    if task.name in ("squad1", "squad2"):
        return "TEXT --question TEXT"
    has_pair = glue.unlabelled.second is not None if glue else task.pair is not None
    return "TEXT --pair TEXT" if has_pair else "TEXT"


def _seeds(text):
    """Reads `--seeds`: a number of trainings, or seeds parted by commas."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or numbers == [0] or len(set(numbers)) < len(numbers):
        raise InputError(
            "`--seeds` should be how many there are to be, or different seeds parted by commas. "
            f"Received: {text}."
        )
    return numbers if len(numbers) > 1 else numbers[0]
