"""`albert-keras analyze ...`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import Step, TextColumn
from albert_keras.report import count_of, optional, table

app = App(name="analyze", help="Analyse the layers of trained models.", no_args_is_help=True)


@app.command()
@command()
def layers(
    given,
    models: Annotated[list[Path], Argument(metavar="RUN")],
    data: Annotated[Path, Option(metavar="TEXT|RECORDS")],
    out: Path | None = None,
    depth: Annotated[int | None, Option(show_default="the trained depth", min=1)] = None,
    random_weights: bool = False,
    step: Step = None,
    text_column: TextColumn = None,
    limit: Annotated[int, Option(min=1)] = 256,
    batch_size: Annotated[int, Option(min=1)] = 32,
    seed: Annotated[int, Option(min=0)] = 0,
):
    """Compare the state before and after every layer, also beyond the trained depth.

    Masked tokens are also predicted from the states after each layer.

    Example:
      albert-keras analyze layers runs/albert runs/bert --data records-heldout/ \\
          --random-weights --out layers

    Args:
      models: Runs, fine-tunings, exports, names of shipped models, checkpoints or .keras files.
      data: Folder of records; text file with a text on each line; or table (.tsv, .csv, .jsonl).
      out: New folder for the figures, CSV tables and JSON.
      depth: Number of layers to apply; may exceed the trained depth only if all layers share
        weights.
      random_weights: Add the model of each shape with random weights, for comparison.
      limit: Number of texts or records to read.
      batch_size: Sequences per batch.
      seed: Seed of the random weights.
    """
    from albert_keras.research.analyze.layers import analyze_layers

    result = analyze_layers(**given)
    lines = []
    header = ("depth", "distance", "cosine", "angle", "loss", "accuracy")
    for model in result.models:
        lines.append(model["model"])
        rows = [
            (
                str(row.depth),
                optional(row.l2),
                optional(row.cosine, ".4f"),
                optional(row.degrees, ".1f"),
                optional(row.masked_lm_loss),
                optional(row.masked_lm_accuracy, ".1%"),
            )
            for row in result.depths
            if row.model == model["model"]
        ]
        lines += table(header, rows, left=())
    lines.append(f"{count_of(len(result.files), 'file')}: {', '.join(result.files)}")
    return Output(result, lines)
