"""`albert-keras analyze ...`."""

from pathlib import Path

from albert_keras.cli import options
from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import count_of, percent, plain
from albert_keras.cli.preflight import check_files, check_origin, check_records
from albert_keras.report import optional, table

app = App(
    help="Analyse the layers, heads and embeddings of trained models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

MODELS = argument(
    ...,
    "Runs, fine-tunings, exports, names of shipped models, checkpoints or .keras files.",
    metavar="RUN",
)
DATA = option(
    ...,
    "Folder of records; text file with a text on each line; or table (.tsv, .csv, .jsonl).",
    metavar="TEXT|RECORDS",
)
OUT = option(..., "New folder for the figures, CSV tables and JSON.")
RANDOM = option(
    False, "Add the model of each shape with random weights, for comparison.", "--random-weights"
)
SEED = option(0, "Seed of the random weights.", min=0)
TEXT_COLUMN = option(
    None, "Column of the text in a table: a name, or a number from 0.", metavar="COLUMN"
)
LIMIT = option(256, "Number of texts or records to read.", min=1)
BATCH_SIZE = option(32, "Sequences per batch.", min=1)


@app.command()
@command()
def layers(
    models: list[Path] = MODELS,
    data: Path = DATA,
    out: Path = OUT,
    depth: int | None = option(
        None,
        "Number of layers to apply; may exceed the trained depth only if all layers share weights.",
        min=1,
        shown="the trained depth",
    ),
    random_weights: bool = RANDOM,
    step: str | None = options.STEP,
    text_column: str | None = TEXT_COLUMN,
    limit: int = LIMIT,
    batch_size: int = BATCH_SIZE,
    seed: int = SEED,
):
    """Compare the state before and after every layer, also beyond the trained depth.

    Masked tokens are also predicted from the states after each layer.

    \b
    Example:
      albert-keras analyze layers runs/albert runs/bert --data records-heldout/ \\
          --random-weights --out layers
    """
    _check(models, data, out)
    from albert_keras.research.analyze.layers import analyze_layers

    result = analyze_layers(
        models, data, out, depth, random_weights, step, text_column, limit, batch_size, seed
    )
    lines = []
    header = ("depth", "distance", "cosine", "angle", "turn", "to trained", "loss", "accuracy")
    for model in result.models:
        lines.append(model["model"])
        rows = [
            (
                str(row.depth),
                optional(row.l2),
                optional(row.cosine, ".4f"),
                optional(row.degrees, ".1f"),
                optional(row.turn),
                optional(row.to_trained_l2),
                optional(row.masked_lm_loss),
                optional(row.masked_lm_accuracy, ".1%"),
            )
            for row in result.depths
            if row.model == model["model"]
        ]
        lines += table(header, rows, left=())
    return Output(plain(result), [*lines, *_file_lines(result)])


@app.command()
@command()
def attention(
    model: Path = argument(
        ..., "Run, fine-tuning, export, name of a shipped model, checkpoint or .keras file."
    ),
    data: Path = DATA,
    out: Path = OUT,
    text: str | None = option(
        None, "Text whose attention maps are written.", shown="the first one of --data"
    ),
    step: str | None = options.STEP,
    text_column: str | None = TEXT_COLUMN,
    limit: int = LIMIT,
    batch_size: int = BATCH_SIZE,
):
    """Summarize what each attention head attends to, and write the maps of one text.

    \b
    Example:
      albert-keras analyze attention runs/books --data sentences.txt --out attention \\
          --text "The captain lost his ship in the storm."
    """
    _check([model], data, out)
    from albert_keras.research.analyze.attention import analyze_attention

    result = analyze_attention(model, data, out, text, step, text_column, limit, batch_size)
    rows = [
        (
            f"{head.layer}.{head.head}" if head.layer else "uniform",
            f"{head.entropy:.3f}",
            f"{head.distance:.2f}",
            percent(head.special),
            percent(head.own),
        )
        for head in (*result.heads, result.uniform)
    ]
    header = ("layer.head", "entropy", "distance", "special tokens", "itself")
    values = plain(result)
    del values["maps"]  # many numbers, which the files contain
    return Output(values, [*table(header, rows, left=()), *_file_lines(result)])


@app.command()
@command()
def embeddings(
    models: list[Path] = MODELS,
    out: Path = OUT,
    token: list[str] | None = option(
        None, "Word or piece whose nearest neighbours are listed; may be repeated."
    ),
    random_weights: bool = RANDOM,
    top_k: int = option(8, "Number of neighbours of each token.", min=1),
    center: bool = option(
        False,
        "Subtract the mean of all embeddings before the cosines are computed, so that what all "
        "tokens have in common is ignored.",
        "--center",
    ),
    step: str | None = options.STEP,
    seed: int = SEED,
):
    """Analyse the token embeddings: neighbours and singular values.

    \b
    Example:
      albert-keras analyze embeddings runs/books --token king --token sea --out embeddings
    """
    _check(models, None, out)
    from albert_keras.research.analyze.embeddings import analyze_embeddings

    result = analyze_embeddings(
        models,
        token or (),
        out,
        random_weights,
        top_k,
        center,
        step,
        seed,
    )
    lines = [
        f"{each.model}, {each.matrix}: effective rank {each.effective_rank:.1f} of "
        f"{len(each.values)}, 90 % of the squares in {each.values_for_90_percent}"
        for each in result.spectra
    ]
    for each in result.neighbours:
        if each.rank == 1:
            lines.append(f"{each.model}, {each.token}")
        lines.append(f"  {each.cosine:6.3f}  {each.neighbour}")
    return Output(plain(result), [*lines, *_file_lines(result)])


def _check(models, data, out):
    """Finds mistakes in paths before TensorFlow is imported."""
    from data_pipeline.files import check_output_folder

    check_output_folder(out)
    for model in models:
        check_origin(str(model))
    if data is not None and data.is_dir():
        check_records(data)
    else:
        check_files(data)


def _file_lines(result):
    return [f"{count_of(len(result.files), 'file')}: {', '.join(result.files)}"]
