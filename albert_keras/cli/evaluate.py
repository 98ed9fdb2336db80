"""`albert-keras evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def evaluate(
    run: Annotated[Path, typer.Option(help="Folder of the run.", show_default=False)],
    data: Annotated[
        Path, typer.Option(help="Folder of records it was not trained on.", show_default=False)
    ],
    step: Annotated[
        str | None,
        typer.Option(help="Which checkpoint: a number or `best`.", show_default="the newest"),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Records at a time.")] = 64,
    strategy: options.Strategy = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Score a run on held-out records, beside what guessing scores.

    \b
    Example:
      albert-keras evaluate --run runs/books --data records-heldout/
    """
    start(verbose, debug)
    from albert_keras.training.evaluate import evaluate as evaluate_run

    result = evaluate_run(run, data, step, batch_size, strategy or "auto")
    show(result, describe(result), as_json)


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
