"""`albert-keras export`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Step
from albert_keras.cli.output import shell
from albert_keras.formats.detection import detect
from albert_keras.report import percent
from albert_keras.serving.layout import check_model_name


@command()
def export(
    given,
    *,
    run: Annotated[Path, Option()],
    out: Annotated[Path, Option()],
    step: Step = None,
    sequence_length: Annotated[
        int | None, Option("--max-seq-length", show_default="as in training")
    ] = None,
    precision: str = "float32",
    lite: list[str] | None = None,
):
    """Export a run as a SavedModel and as a .keras model.

    The SavedModel takes plain strings. A version is published only if tensorflow_model_server has
    its operations, and its answers equal the answers of the Python code.

    Examples:
      albert-keras export --run runs/books --out saved_models/books
      albert-keras export --run runs/books --out saved_models/small --precision int8 --lite int8

    Args:
      run: Folder of a run, of a fine-tuning (its best seed), of a converted model or of an export
        of a pre-trained model; a .keras file; the name of a shipped model; or hf://OWNER/NAME.
      out: Folder named like the model; the next version is created in it.
      sequence_length: Tokens after which a text is truncated.
      precision: Precision: float32, bfloat16 or int8 (weights only).
      lite: Also write TensorFlow Lite: float16 or int8; may be repeated.
    """
    check_model_name(out.absolute().name)
    model = detect(run)
    from albert_keras.serving.publish import export as export_run

    del given["run"]
    result = export_run(model, **given)
    return Output(result, _lines(result))


def _lines(result):
    folder = result.path.parent
    step = "" if result.step is None else f"step {result.step}, "
    size = f"{result.num_bytes / 1e6:.1f} MB"
    yield f"version {result.version} of `{folder.name}`, {step}{size}: {result.path}"
    yield from _variant_lines(result)
    yield f"signatures: {', '.join(result.signatures)}"
    yield f"for Keras: {result.keras_file}; description: {result.path / 'README.md'}"
    yield f"serve: {shell('albert-keras', 'serve', folder)}"
    server = "tensorflow_model_server", "--rest_api_port=8501", f"--model_name={folder.name}"
    yield f"serve: {shell(*server, f'--model_base_path={folder.absolute()}')}"


def _variant_lines(result):
    """Yields the loss of accuracy of each variant, if any was measured."""
    for variant, loss in result.losses.items():
        yield (
            f"{variant}: same answer as float32 for {percent(loss.agreement)} of "
            f"{loss.num_predictions}, outputs differ by {loss.largest_difference:.2g} at most"
        )
