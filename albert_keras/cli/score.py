"""`albert-keras score`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def score(
    task: Annotated[
        str, typer.Option(help="A labelled GLUE task, squad1 or squad2.", show_default=False)
    ],
    data: Annotated[Path, typer.Option(help="Labelled file of the task.", show_default=False)],
    predictions: Annotated[
        Path,
        typer.Option(
            help="predictions.json of SQuAD; of GLUE a .tsv of index and prediction.",
            show_default=False,
        ),
    ],
    null_odds: Annotated[
        Path | None,
        typer.Option(
            help="null_odds.json of squad2: find the best thresholds.", show_default=False
        ),
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Score a file of predictions, whoever made it, as the official scripts do.

    \b
    Examples:
      albert-keras score --task squad1 --data dev-v1.1.json --predictions predictions.json
      albert-keras score --task cola --data CoLA/dev.tsv --predictions CoLA.tsv
    """
    start(verbose, debug)
    from albert_keras.tasks.score_files import score_predictions

    result = score_predictions(task, data, predictions, null_odds)
    lines = [f"{result.task}, {result.examples:,} examples"]
    lines += [f"  {name:20} {value:.10g}" for name, value in result.scores.items()]
    show(result, lines, as_json)
