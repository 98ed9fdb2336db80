"""`albert-keras embed`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import count_of, quiet
from data_pipeline.errors import InputError
from data_pipeline.limits import bounded_lines


@command()
def embed(
    model: Path = argument(
        ..., "Run, fine-tuning, export, name of a shipped model, checkpoint or .keras file."
    ),
    texts: list[str] | None = argument(
        None, "Text to embed; without TEXT and --file, lines of stdin.", metavar="TEXT"
    ),
    out: Path = option(..., "File of vectors to write: .npy, .parquet or .jsonl."),
    file: Path | None = option(
        None, "Table (.tsv, .csv, .jsonl), or text file with a text on each line."
    ),
    text_column: str | None = option(
        None, "Column of the text in a table: a name, or a number from 0.", metavar="COLUMN"
    ),
    id_column: str | None = option(
        None, "Column of the id in a table.", metavar="COLUMN", shown="the number of the row"
    ),
    pooling: str | None = option(
        None,
        "How the vector of a text is computed.",
        metavar="[mean|cls|pooler]",
        shown="as in the training for similarity, otherwise mean",
    ),
    layers: str = option(
        "last",
        "Layers whose outputs are averaged, separated by commas: 1 is the first, -1 the last.",
        metavar="last|LAYER,...",
    ),
    normalize: bool = option(False, "Divide each vector by its length.", "--normalize"),
    max_seq_length: int | None = option(
        None, "Tokens after which a text is truncated.", shown="as in training"
    ),
    batch_size: int = option(64, "Texts per batch.", min=1),
    step: str | None = option(
        None, "Checkpoint: a number or `best`.", shown="the newest; for a fine-tuning the best"
    ),
    overwrite: bool = option(False, "Replace the files of --out.", "--overwrite"),
):
    """Embed texts: write a vector for each.

    \b
    Examples:
      albert-keras embed runs/books --file sentences.txt --out sentences.npy
      albert-keras embed runs/books --file mail.csv --text-column body --id-column id \\
          --out mail.parquet --normalize
      cat sentences.txt | albert-keras embed saved_models/books --out sentences.jsonl
    """
    if texts and file is not None:
        raise InputError(
            f"TEXT must not be given with --file. Received: {len(texts)} and `{file}`."
        )
    chosen = parse_layers(layers)
    from albert_keras.embeddings.embed import embed as embed_texts

    result = embed_texts(
        model,
        None if file is not None else texts or lines_of_stdin(),
        file,
        out,
        text_column,
        id_column,
        pooling,
        chosen,
        normalize,
        max_seq_length,
        batch_size,
        step,
        overwrite,
    )
    values = result._asdict() | {"settings": result.settings._asdict()}
    del values["vectors"], values["ids"]
    lines = [
        f"{count_of(result.num_texts, 'vector')} of {result.size} numbers, "
        f"{count_of(result.num_truncated, 'text')} truncated: {out}",
        f"next: albert-keras similar {out} TEXT",
    ]
    return Output(values, lines)


def parse_layers(text: str) -> tuple[int, ...]:
    """Parses `--layers`: "last", or numbers separated by commas."""
    if text == "last":
        return (-1,)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            "`--layers` must be `last`, or numbers of layers separated by commas, such as -2,-1. "
            f"Received: {text}."
        ) from None


def lines_of_stdin() -> Iterator[str]:
    """Yields the lines of stdin that are not blank; InputError if one is not UTF-8 or too long."""
    if sys.stdin.isatty():
        quiet()
        typer.echo("reading lines from the keyboard until Ctrl-D", err=True)
    for number, data in enumerate(bounded_lines(sys.stdin.buffer, "stdin"), start=1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            raise InputError(f"Line {number} of stdin is not UTF-8. Received: {byte}.") from None
        if line.strip():
            yield line
