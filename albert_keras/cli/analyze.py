"""`albert-keras analyze ...`."""

from pathlib import Path

from albert_keras.cli import options
from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import count_of, percent, plain
from albert_keras.cli.preflight import check_files, check_origin, check_records

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
def similarity(
    models: list[Path] = MODELS,
    data: Path = DATA,
    out: Path = OUT,
    random_weights: bool = RANDOM,
    step: str | None = options.STEP,
    text_column: str | None = TEXT_COLUMN,
    limit: int = LIMIT,
    batch_size: int = BATCH_SIZE,
    seed: int = SEED,
):
    """Compare the input and the output of every layer: L2 distance and cosine.

    \b
    Example:
      albert-keras analyze similarity runs/albert runs/bert --data sentences.txt \\
          --random-weights --out similarity
    """
    _check(models, data, out)
    from albert_keras.analysis.similarity import analyze_similarity

    result = analyze_similarity(
        models, data, out, random_weights, step, text_column, limit, batch_size, seed
    )
    lines = []
    for model in result.models:
        rows = [row for row in result.layers if row.model == model["model"]]
        lines.append(model["model"])
        lines += _table(
            ("layer", "L2 distance", "cosine", "degrees"),
            [(str(r.layer), f"{r.l2:.3f}", f"{r.cosine:.4f}", f"{r.degrees:.1f}") for r in rows],
        )
    return _output(result, lines)


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
    from albert_keras.analysis.attention import analyze_attention

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
    return Output(values, [*_table(header, rows), *_file_lines(result)])


@app.command()
@command()
def embeddings(
    models: list[Path] = MODELS,
    out: Path = OUT,
    token: list[str] | None = option(
        None, "Word or piece whose nearest neighbours are listed; may be repeated."
    ),
    data: Path | None = option(
        None,
        "Texts or records to count tokens in, for norms over frequencies.",
        metavar="TEXT|RECORDS",
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
    text_column: str | None = TEXT_COLUMN,
    limit: int = option(10_000, "Number of texts or records to count.", min=1),
    seed: int = SEED,
):
    """Analyse the token embeddings: neighbours, singular values, norms over frequencies.

    \b
    Example:
      albert-keras analyze embeddings runs/books --token king --token sea \\
          --data sentences.txt --out embeddings
    """
    _check(models, data, out)
    from albert_keras.analysis.embeddings import analyze_embeddings

    result = analyze_embeddings(
        models,
        token or (),
        data,
        out,
        random_weights,
        top_k,
        center,
        step,
        text_column,
        limit,
        seed,
    )
    lines = [
        f"{each.model}, {each.matrix}: effective rank {each.effective_rank:.1f} of "
        f"{len(each.values)}, 90 % of the squares in {each.values_for_90_percent}"
        for each in result.spectra
    ]
    lines += [
        f"{model}: rank correlation of norm and frequency {value:.2f}"
        for model, value in result.correlations.items()
    ]
    for each in result.neighbours:
        if each.rank == 1:
            lines.append(f"{each.model}, {each.token}")
        lines.append(f"  {each.cosine:6.3f}  {each.neighbour}")
    values = plain(result)
    del values["norms"]  # a row for each token of the vocabulary, which the files contain
    return Output(values, [*lines, *_file_lines(result)])


@app.command()
@command()
def convergence(
    models: list[Path] = MODELS,
    data: Path = DATA,
    out: Path = OUT,
    depth: int | None = option(
        None,
        "Number of layers to apply; may exceed the trained depth only if all layers share weights.",
        min=1,
        shown="three times the trained depth if all layers share weights",
    ),
    random_weights: bool = RANDOM,
    step: str | None = options.STEP,
    text_column: str | None = TEXT_COLUMN,
    limit: int = LIMIT,
    batch_size: int = BATCH_SIZE,
    seed: int = SEED,
):
    """Follow the hidden states while a shared layer is applied repeatedly.

    Masked tokens are also predicted from the states after each layer.

    \b
    Example:
      albert-keras analyze convergence runs/books --data records-heldout/ --depth 48 \\
          --out convergence
    """
    _check(models, data, out)
    from albert_keras.analysis.convergence import analyze_convergence

    result = analyze_convergence(
        models, data, out, depth, random_weights, step, text_column, limit, batch_size, seed
    )
    lines, header = [], ("depth", "distance", "turn", "to trained", "loss", "accuracy")
    for model in result.models:
        rows = [row for row in result.depths if row.model == model["model"]]
        lines.append(model["model"])
        lines += _table(
            header,
            [
                (
                    str(row.depth),
                    _shown(row.l2),
                    _shown(row.turn),
                    _shown(row.to_trained_l2),
                    _shown(row.masked_lm_loss),
                    "-" if row.masked_lm_accuracy is None else percent(row.masked_lm_accuracy),
                )
                for row in rows
            ],
        )
    return _output(result, lines)


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


def _output(result, lines):
    return Output(plain(result), [*lines, *_file_lines(result)])


def _file_lines(result):
    return [f"{count_of(len(result.files), 'file')}: {', '.join(result.files)}"]


def _shown(value):
    return "-" if value is None else f"{value:.3f}"


def _table(header, rows):
    """Lays out rows of texts in columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return ["  " + "  ".join(map(str.rjust, row, widths)) for row in (header, *rows)]
