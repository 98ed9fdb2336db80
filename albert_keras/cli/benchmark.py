"""`albert-keras benchmark ...`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import benchmark_costs, benchmark_infer, options
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
    from albert_keras.benchmarks.data import benchmark_data, data_lines

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
    from albert_keras.benchmarks.read import benchmark_read, read_lines

    result = benchmark_read(records, batch_size, steps, repeats, None if no_model else model)
    show(result, read_lines(result), as_json)


app.command("infer")(benchmark_infer.infer)
app.command("costs")(benchmark_costs.costs)

Model = Annotated[str, typer.Option(help="Named model, or LAYERSxHIDDEN such as 6x256.")]


@app.command()
def train(
    model: Model = "albert-base",
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 8,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per sequence.")] = 128,
    precision: Annotated[
        list[str], typer.Option(help="float32 or mixed_bfloat16; may be repeated.")
    ] = ("float32", "mixed_bfloat16"),
    peers: Annotated[
        list[str], typer.Option(help="all, none, keras-nlp or transformers; may be repeated.")
    ] = ("all",),
    repeats: Annotated[int, typer.Option(min=1, help="Rounds.")] = 5,
    seconds: Annotated[float, typer.Option(min=0, help="Of each in a round.")] = 2,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure a training step beside those of other libraries: speed, share of the peak, memory.

    \b
    Example:
      albert-keras benchmark train --model albert-base --batch-size 8 --max-seq-length 128
    """
    start(verbose, debug)
    from albert_keras.benchmarks.train import benchmark_train, train_lines

    result = benchmark_train(model, batch_size, max_seq_length, precision, peers, repeats, seconds)
    show(result, train_lines(result), as_json)


@app.command()
def profile(
    model: Annotated[
        str, typer.Option(help="Named model, or LAYERSxHIDDEN such as 6x256.")
    ] = "albert-base",
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 8,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per sequence.")] = 128,
    precision: Annotated[str, typer.Option(help="float32, mixed_bfloat16 or auto.")] = "auto",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Tell where the time of a training step goes, operation by operation.

    \b
    Example:
      albert-keras benchmark profile --model albert-base --precision mixed_bfloat16
    """
    start(verbose, debug)
    from albert_keras.benchmarks.profile import benchmark_profile, profile_lines

    result = benchmark_profile(model, batch_size, max_seq_length, precision)
    show(result, profile_lines(result), as_json)


@app.command()
def memory(
    model: Model = "albert-base",
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences per step.")] = 8,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per sequence.")] = 512,
    precision: Annotated[
        str, typer.Option(help="float32, mixed_bfloat16, mixed_float16 or auto.")
    ] = "float32",
    parts: Annotated[int, typer.Option(min=1, help="Parts of an accumulated batch.")] = 4,
    repeats: Annotated[int, typer.Option(min=1, help="Processes of each kind.")] = 1,
    peers: Annotated[
        list[str], typer.Option(help="all, none, keras-nlp or transformers; may be repeated.")
    ] = ("none",),
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
    from albert_keras.benchmarks.memory import benchmark_memory, memory_lines

    result = benchmark_memory(model, batch_size, max_seq_length, precision, parts, repeats, peers)
    show(result, memory_lines(result), as_json)
