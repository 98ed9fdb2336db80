"""`albert-keras benchmark costs`."""

from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def costs(
    model: Annotated[
        list[str] | None,
        typer.Option(help="Named model; may be repeated.", show_default="those of the paper"),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 1,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per sequence.")] = 128,
    precision: Annotated[
        str, typer.Option(help="float32, mixed_bfloat16 or mixed_float16.")
    ] = "float32",
    memory: Annotated[
        str | None,
        typer.Option(
            help="What a step may take, such as 20GB.", show_default="80 % of the machine's"
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Processes of each model.")] = 1,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure a training step of ALBERT and BERT in all sizes, as in table 2 of the paper.

    \b
    Example:
      albert-keras benchmark costs --batch-size 1 --max-seq-length 128
    """
    start(verbose, debug)
    from albert_keras.benchmarks.costs import MODELS, benchmark_costs, costs_lines
    from albert_keras.planning.sizes import parse_bytes

    result = benchmark_costs(
        tuple(model or MODELS),
        batch_size,
        max_seq_length,
        precision,
        repeats,
        None if memory is None else parse_bytes(memory, "--memory"),
    )
    show(result, costs_lines(result), as_json)
