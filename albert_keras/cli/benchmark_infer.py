"""`albert-keras benchmark infer`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def infer(
    model: Annotated[
        str, typer.Option(help="Named model, or LAYERSxHIDDEN such as 6x256.")
    ] = "albert-base",
    batch_size: Annotated[
        list[int], typer.Option(min=1, help="Texts at once; may be repeated.")
    ] = (1, 32),
    max_seq_length: Annotated[
        list[int], typer.Option(min=8, max=512, help="Pieces of each text; may be repeated.")
    ] = (128,),
    precision: Annotated[
        list[str], typer.Option(help="float32, bfloat16 or int8 (weights); may be repeated.")
    ] = ("float32", "bfloat16", "int8"),
    peers: Annotated[
        list[str],
        typer.Option(
            help="all, none, keras-nlp, transformers, onnxruntime or openvino; may be repeated."
        ),
    ] = ("all",),
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="Folder made by `vocab`.", show_default="trained on documentation"),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds.")] = 5,
    seconds: Annotated[float, typer.Option(min=0, help="Of each in a round.")] = 2,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Measure answers of an export, from plain text, beside those of other libraries on ids.

    \b
    Example:
      albert-keras benchmark infer --batch-size 1 --max-seq-length 32 --max-seq-length 128
    """
    start(verbose, debug)
    from albert_keras.benchmarks.infer import benchmark_infer, infer_lines

    result = benchmark_infer(
        model, batch_size, max_seq_length, precision, peers, tokenizer, repeats, seconds
    )
    show(result, infer_lines(result), as_json)
