"""`albert-keras predict`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def predict(
    export: Annotated[
        Path, typer.Argument(help="Exported model, or one version.", show_default=False)
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT...", help="With [MASK] in it; none: lines of stdin.", show_default=False
        ),
    ] = None,
    then: Annotated[
        str | None,
        typer.Option(
            help="Ask instead whether this comes after TEXT.", metavar="TEXT", show_default=False
        ),
    ] = None,
    top_k: Annotated[int, typer.Option(help="Candidates per [MASK].")] = 5,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Fill masks, or judge the order of two passages, with an exported model.

    \b
    Examples:
      albert-keras predict saved_models/books "The capital of France is [MASK]."
      albert-keras predict saved_models/books "He opened the door." --then "He went in."
    """
    start(verbose, debug)
    from albert_keras.serving.predictor import Predictor

    texts = texts or [line.rstrip("\n") for line in sys.stdin if line.strip()]
    predictor = Predictor(export)
    if then is not None:
        answers = predictor.sentence_order(texts, [then] * len(texts))
        lines = [f"{answer.in_order:6.1%}  in this order: {answer.first}" for answer in answers]
    else:
        answers = predictor.fill_mask(texts, top_k)
        lines = [line for answer in answers for line in describe(answer)]
    show([_plain(answer) for answer in answers], lines, as_json)


def describe(answer):
    """Words a FilledMask, list of str."""
    lines = [answer.filled_text]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {score:.1%}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the length the model takes)")
    return lines


def _plain(answer):
    values = answer._asdict()
    if "masks" in values:
        values["masks"] = [[entry._asdict() for entry in mask] for mask in values["masks"]]
    return values
