"""`albert-keras benchmark ...`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

app = typer.Typer(
    help="Measure this machine; benchmarks/README.md tells what the numbers mean.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def data(
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Text file, folder or 'glob'; may be repeated.",
            show_default="documentation of the installed packages",
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Folder made by `vocab`.", show_default="trained on the corpus"),
    ] = None,
    vocab_size: Annotated[int, typer.Option(help="Pieces, if it is trained here.")] = 8000,
    max_seq_length: Annotated[int, typer.Option(help="Pieces per record.")] = 512,
    copies: Annotated[
        list[int], typer.Option(min=1, help="Passes over the corpus; may be repeated.")
    ] = (1, 10),
    workers: Annotated[
        list[int],
        typer.Option(min=1, help="Processes; may be repeated, compared with the first."),
    ] = (1, 2),
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each kind.")] = 3,
    scale_to_mb: Annotated[float, typer.Option(min=0, help="Text to compare workers on.")] = 400,
    corpus_format: options.CorpusFormat = "auto",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure builds: speed by copies, where the time goes, gain from workers, memory.

    \b
    Example:
      albert-keras benchmark data --corpus books/ --tokenizer tokenizer/
    """
    start(verbose, debug)
    from albert_keras.benchmarks.data import benchmark_data
    from albert_keras.benchmarks.report import data_lines

    result = benchmark_data(
        corpus,
        tokenizer,
        vocab_size,
        max_seq_length,
        copies,
        workers,
        repeats,
        scale_to_mb,
        corpus_format,
    )
    show(result, data_lines(result), as_json)


@app.command()
def read(
    records: Annotated[
        Path | None,
        typer.Option(
            help="Folder of records.", show_default="of the installed packages' documentation"
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per batch.")] = 32,
    steps: Annotated[int, typer.Option(min=1, help="Batches per run.")] = 2000,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each kind.")] = 5,
    model: Annotated[str, typer.Option(help="Whose training to compare with.")] = "albert-base",
    no_model: Annotated[bool, typer.Option("--no-model", help="Train no model.")] = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure the reader: speed with static and dynamic masks, first batch, a model's need.

    \b
    Example:
      albert-keras benchmark read --records records/
    """
    start(verbose, debug)
    typer.echo("loading TensorFlow", err=True)
    from albert_keras.benchmarks.read import benchmark_read
    from albert_keras.benchmarks.report import read_lines

    result = benchmark_read(records, batch_size, steps, repeats, None if no_model else model)
    show(result, read_lines(result), as_json)


@app.command()
def memory(
    model: Annotated[str, typer.Option(help="Named model.")] = "albert-base",
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 8,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per sequence.")] = 512,
    precision: Annotated[
        str, typer.Option(help="float32, mixed_bfloat16, mixed_float16 or auto.")
    ] = "float32",
    parts: Annotated[int, typer.Option(min=1, help="Parts of an accumulated batch.")] = 4,
    repeats: Annotated[int, typer.Option(min=1, help="Processes of each kind.")] = 1,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure the memory of a training step, with blocks kept or computed again, in parts.

    \b
    Example:
      albert-keras benchmark memory --model albert-base --batch-size 8
    """
    start(verbose, debug)
    from albert_keras.benchmarks.memory import benchmark_memory
    from albert_keras.benchmarks.report import memory_lines

    result = benchmark_memory(model, batch_size, max_seq_length, precision, parts, repeats)
    show(result, memory_lines(result), as_json)
