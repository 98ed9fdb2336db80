"""`albert-keras evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start
from data_pipeline.errors import InputError


def evaluate(
    run: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH",
            help="Folder of a run, or of a fine-tuning; several of these are averaged.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of records it was not trained on; or a labelled file of the task.",
            show_default="the task's development examples",
        ),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Split of the task's official files.", show_default="dev"),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of these files.", show_default="as in training"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for answers, errors and a picture.", show_default=False),
    ] = None,
    all_seeds: Annotated[
        bool, typer.Option("--all-seeds", help="Average all seeds, not only the best one.")
    ] = False,
    step: Annotated[
        str | None,
        typer.Option(
            help="Which checkpoint: a number or `best`.", show_default="the newest; of a task best"
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows at a time.")] = 64,
    strategy: options.Strategy = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Score a run, or fine-tuned models, on held-out examples, beside a guess.

    \b
    Examples:
      albert-keras evaluate --run runs/books --data records-heldout/
      albert-keras evaluate --run runs/sst-2 --out scores/
      albert-keras evaluate --run runs/sst-2 --run runs/sst-2-large --all-seeds
    """
    start(verbose, debug)
    from albert_keras.finetuning.finetuned import is_finetuned

    for each in run:
        if not ((each / "run.json").is_file() or is_finetuned(each)):
            raise InputError(
                f"`{each}` should be the folder of a run or of a fine-tuning: it has no run.json "
                "and no results.json. Make one with `albert-keras pretrain` or `finetune`."
            )
    if any(is_finetuned(each) for each in run):
        from albert_keras.finetuning.evaluate import evaluate_task

        result = evaluate_task(
            run,
            data,
            data_dir,
            split,
            out,
            all_seeds,
            step or "best",
            batch_size,
            strategy or "auto",
        )
        show(result, describe_task(result), as_json)
        return
    told = {"--split": split, "--out": out, "--data-dir": data_dir, "--all-seeds": all_seeds}
    for name, value in told.items():
        if value:
            raise InputError(f"`{name}` is for fine-tuned models. `{run[0]}` is none.")
    if len(run) > 1 or data is None:
        raise InputError(
            "A pre-training run is scored by itself, on `--data`, a folder of records. Received: "
            f"{len(run)} run{'s' if len(run) > 1 else ''} and {data or 'no --data'}."
        )
    from albert_keras.training.evaluate import evaluate as evaluate_run

    result = evaluate_run(run[0], data, step, batch_size, strategy or "auto")
    show(result, describe(result), as_json)


def describe_task(evaluation):
    """Words a TaskEvaluation, list of str."""
    is_percent = evaluation.task in ("squad1", "squad2")

    def shown(value):
        return f"{value:.1f}" if is_percent else f"{value:.3f}"

    low, high = evaluation.interval
    metric, count = evaluation.metric, evaluation.examples
    averaged = f", {len(evaluation.runs)} models averaged" if len(evaluation.runs) > 1 else ""
    lines = [
        f"{metric} {shown(evaluation.scores[metric])} [{shown(low)}, {shown(high)}] on {count:,} "
        f"example{'' if count == 1 else 's'} of {evaluation.split}{averaged}"
    ]
    others = [
        f"{name} {value:,.0f}" if name.endswith("_total") else f"{name} {shown(value)}"
        for name, value in evaluation.scores.items()
        if name not in (metric, "total")
    ]
    if others:
        lines.append("  " + "  ".join(others))
    if evaluation.guessing is not None:
        lines.append(f"  always the same answer: {metric} {shown(evaluation.guessing[metric])}")
    if evaluation.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in evaluation.tuned.items())
        place = "on these very examples" if evaluation.is_tuned_here else "in training"
        lines.append(f"  tuned {place}: {tuned}")
    if evaluation.collapse:
        lines.append(f"warning: {evaluation.collapse}")
    files = evaluation.files
    if files:
        shown_files = [f"{name}: {files[name]}" for name in files if name != "answers"]
        lines += ["   ".join(shown_files), f"answers: {', '.join(files['answers'])}"]
    return lines


def describe(evaluation):
    """Words the scores of an Evaluation, list of str."""
    lines = [
        f"step {evaluation.step}, {evaluation.num_records} records, "
        f"{evaluation.num_predictions} masked pieces",
        f"masked LM       accuracy {evaluation.masked_lm_accuracy:.2%}   "
        f"always guessing {evaluation.unigram_guess!r}: {evaluation.unigram_accuracy:.2%}   "
        f"loss {evaluation.masked_lm_loss:.3f}",
    ]
    if evaluation.sentence_order_accuracy is not None:
        lines.append(
            f"sentence order  accuracy {evaluation.sentence_order_accuracy:.2%} "
            f"± {evaluation.sentence_order_error:.2%}   "
            f"chance: {evaluation.sentence_order_chance:.2%}   "
            f"loss {evaluation.sentence_order_loss:.3f}"
        )
    return lines
