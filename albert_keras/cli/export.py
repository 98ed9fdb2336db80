"""`albert-keras export`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start
from data_pipeline.errors import InputError


def export(
    run: Annotated[
        Path,
        typer.Option(
            help="Folder of a run, of a fine-tuning, whose best seed is taken, or of a converted "
            "model.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the model's name; a version comes in it.")],
    step: Annotated[
        str | None,
        typer.Option(
            help="Which checkpoint: a number or `best`.",
            show_default="the newest; of a fine-tuning the best",
        ),
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
            help="Held-out records, or a file of examples of the task, on which the loss of "
            "accuracy is measured.",
            show_default="examples for development, else installed documentation",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(help="So many versions stay, the older ones go.", show_default="all"),
    ] = None,
    encode_layers: Annotated[
        str | None,
        typer.Option(
            help="Blocks, such as 9,10,11,12, whose outputs `encode` gives side by side.",
            show_default="none",
        ),
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Write a run as a SavedModel over plain strings, and as a .keras model.

    The version gets its name when it has answered as it should where only the operations of
    tensorflow_model_server are.

    \b
    Example:
      albert-keras export --run runs/books --out saved_models/books
      albert-keras export --run runs/books --out saved_models/small --precision int8 --lite int8
      albert-keras export --run runs/sst-2 --out saved_models/sst-2 --keep 3
    """
    start(verbose, debug)
    layers = _numbers(encode_layers)
    from albert_keras.serving.publish import export as export_run

    result = export_run(
        run,
        out,
        step,
        version,
        max_seq_length,
        precision,
        lite or (),
        eval_data,
        keep=keep,
        layers=layers,
    )
    name = result.path.parent.name
    losses = {variant: loss._asdict() for variant, loss in result.losses.items()}
    is_pretrained = "fill_mask" in result.signatures
    show(
        result._asdict() | {"losses": losses},
        [
            f"version {result.version} of `{name}`, "
            + ("" if result.step is None else f"step {result.step}, ")
            + f"{result.num_bytes / 1e6:.1f} MB: {result.path}",
            *_variant_lines(result),
            f"asked by: {', '.join(result.signatures)}",
            f"fingerprint: {result.fingerprint['saved_model_checksum']}",
            *_difference_line(result),
            f"for Keras: {result.keras_file}; what it is: {result.path.parent / 'README.md'}",
            f"serve: tensorflow_model_server --rest_api_port=8501 --model_name={name} "
            f"--model_base_path={result.path.parent.absolute()}",
            f'next: albert-keras predict {result.path.parent} "The capital of France is [MASK]."'
            if is_pretrained
            else f"next: albert-keras serve {result.path.parent}",
        ],
        as_json,
    )


def _numbers(text):
    """Reads numbers parted by commas: tuple of int."""
    try:
        return tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        raise InputError(
            f"`--encode-layers` should be numbers, parted by commas. Received: {text!r}."
        ) from None


def _difference_line(result):
    if result.largest_difference is not None:
        difference = result.largest_difference
        yield f"checked: answers as the Python path does, to {difference:.1g}"


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
            line += f", {_describe_loss(loss)}"
        yield line
    any_loss = next(iter(result.losses.values()))
    what = "masked pieces" if hasattr(any_loss, "float32_loss") else "examples"
    yield f"measured at {any_loss.num_predictions} {what}"


def _describe_loss(loss):
    if hasattr(loss, "float32_loss"):
        mean, largest = 100 * loss.mean_difference, 100 * loss.largest_difference
        return (
            f"likeliest piece as float32 {loss.agreement:.1%}, probabilities differ by "
            f"{mean:.2g}% (one by {largest:.2g}% at most), "
            f"masked-LM loss {loss.loss:.4f} (float32 {loss.float32_loss:.4f})"
        )
    scores = (
        f"{name} {score:.4f} (float32 {loss.float32_scores[name]:.4f})"
        for name, score in loss.scores.items()
    )
    return ", ".join(
        (
            f"answers as float32 {loss.agreement:.1%}",
            f"numbers differ by {loss.mean_difference:.2g} ({loss.largest_difference:.2g} at most)",
            *scores,
        )
    )
