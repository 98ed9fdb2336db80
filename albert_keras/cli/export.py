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
    precision: Annotated[
        str, typer.Option(help="Of the SavedModel: float32, bfloat16 or int8 (weights only).")
    ] = "float32",
    lite: Annotated[
        list[str] | None,
        typer.Option(
            help="Write a TensorFlow Lite file too: float16 or int8; may be repeated.",
            show_default=False,
        ),
    ] = None,
    eval_data: Annotated[
        Path | None,
        typer.Option(
            help="Held-out records on which the loss of accuracy is measured.",
            show_default="installed documentation",
        ),
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Write a run as a SavedModel over plain strings, and as a .keras model.

    \b
    Example:
      albert-keras export --run runs/books --out saved_models/books
      albert-keras export --run runs/books --out saved_models/small --precision int8 --lite int8
    """
    start(verbose, debug)
    from albert_keras.serving.publish import export as export_run

    result = export_run(run, out, step, version, max_seq_length, precision, lite or (), eval_data)
    name = result.path.parent.name
    losses = {variant: loss._asdict() for variant, loss in result.losses.items()}
    show(
        result._asdict() | {"losses": losses},
        [
            f"version {result.version} of `{name}`, step {result.step}, "
            f"{result.num_bytes / 1e6:.1f} MB: {result.path}",
            *_variant_lines(result),
            f"serve: tensorflow_model_server --rest_api_port=8501 --model_name={name} "
            f"--model_base_path={result.path.parent.absolute()}",
            f'next: albert-keras predict {result.path.parent} "The capital of France is [MASK]."',
        ],
        as_json,
    )


def _variant_lines(result):
    """Tells what lies in the folder, and what each variant loses."""
    sizes = {result.precision: result.saved_model_bytes}
    sizes |= {f"lite {weights}": size for weights, size in result.lite_bytes.items()}
    if not result.losses:
        return
    for variant, size in sizes.items():
        line = f"{variant}: {size / 1e6:.1f} MB"
        if variant in result.losses:
            loss = result.losses[variant]
            mean, largest = 100 * loss.mean_difference, 100 * loss.largest_difference
            line += (
                f", likeliest piece as float32 {loss.agreement:.1%}, probabilities differ by "
                f"{mean:.2g}% (one by {largest:.2g}% at most), "
                f"masked-LM loss {loss.loss:.4f} (float32 {loss.float32_loss:.4f})"
            )
        yield line
    any_loss = next(iter(result.losses.values()))
    yield f"measured at {any_loss.num_predictions} masked pieces"
