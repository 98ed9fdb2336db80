"""`albert-keras analyze ...`."""

from albert_keras.cli.command import App, Output, command
from albert_keras.report import count_of, optional, table

app = App(name="analyze", help="Analyse the layers of trained models.", no_args_is_help=True)


@app.command()
@command("albert_keras.research.analyze.layers:analyze_layers")
def layers(call):
    """Compare the state before and after every layer, also beyond the trained depth.

    Masked tokens are also predicted from the states after each layer.

    Example:
      albert-keras analyze layers runs/albert runs/bert --data records-heldout/ \\
          --random-weights --out layers

    Options:
      models <RUN>: Runs, fine-tunings, exports, names of shipped models, checkpoints or .keras
        files.
      data TEXT|RECORDS: Folder of records; text file with a text on each line; or table (.tsv,
        .csv, .jsonl).
      out: New folder for the figures, CSV tables and JSON.
      depth {1..} (the trained depth): Number of layers to apply; may exceed the trained depth only
        if all layers share weights.
      random_weights: Add the model of each shape with random weights, for comparison.
      step text_column
      limit {1..}: Number of texts or records to read.
      batch_size {1..}: Sequences per batch.
      seed {0..}: Seed of the random weights.
    """
    result = call()
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
