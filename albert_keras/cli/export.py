"""`albert-keras export`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def export(
    run: Annotated[Path, typer.Option(help="Folder of the run.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder of the model's name; a version comes in it.")],
    step: Annotated[
        str | None,
        typer.Option(help="Which checkpoint: a number or `best`.", show_default="the newest"),
    ] = None,
    version: Annotated[int | None, typer.Option(show_default="the next")] = None,
    max_seq_length: Annotated[
        int | None, typer.Option(help="Longer texts are cut.", show_default="as trained")
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Write a run as a SavedModel over plain strings, and as a .keras model.

    \b
    Example:
      albert-keras export --run runs/books --out saved_models/books
    """
    start(verbose, debug)
    from albert_keras.serving.publish import export as export_run

    result = export_run(run, out, step, version, max_seq_length)
    name = result.path.parent.name
    show(
        result,
        [
            f"version {result.version} of `{name}`, step {result.step}, "
            f"{result.num_bytes / 1e6:.1f} MB: {result.path}",
            f"serve: tensorflow_model_server --rest_api_port=8501 --model_name={name} "
            f"--model_base_path={result.path.parent.absolute()}",
            f'next: albert-keras predict {result.path.parent} "The capital of France is [MASK]."',
        ],
        as_json,
    )
