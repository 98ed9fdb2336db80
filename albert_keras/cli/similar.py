"""`albert-keras similar`."""

from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.cli.embed import lines_of_stdin
from albert_keras.cli.options import argument, option
from albert_keras.cli.preflight import check_files
from data_pipeline.errors import InputError


@command()
def similar(
    corpus: Path = argument(
        ..., "File of vectors that `embed` wrote; or a table or text file to embed for this call."
    ),
    texts: list[str] | None = argument(
        None, "Text to find similar ones for; without TEXT, lines of stdin.", metavar="TEXT"
    ),
    model: Path | None = option(
        None,
        "Model to embed TEXT with, as for embed; required for texts.",
        shown="the one that embedded CORPUS",
    ),
    top_k: int = option(5, "Number of texts to find for each TEXT.", min=1),
    text_column: str | None = option(
        None, "Column of the text in a table: a name, or a number from 0.", metavar="COLUMN"
    ),
    id_column: str | None = option(
        None, "Column of the id in a table.", metavar="COLUMN", shown="the number of the row"
    ),
    batch_size: int = option(64, "Texts per batch.", min=1),
):
    """Find the texts of a corpus that are most similar to each TEXT.

    The score is the cosine of the vectors, from -1 to 1. The search is exact.

    \b
    Examples:
      albert-keras similar sentences.npy "A boat left the harbour."
      albert-keras similar mail.csv "My invoice is wrong." --text-column body --model runs/mail
    """
    queries = list(texts or lines_of_stdin())
    if not queries:
        raise InputError("There is nothing to search for. Give TEXT, or lines on stdin.")
    check_files(corpus)
    from albert_keras.embeddings.similar import similar as find_similar

    found = find_similar(corpus, queries, model, top_k, text_column, id_column, batch_size)
    lines = []
    for one in found:
        lines.append(" ".join(one.query.split()))
        lines += [
            f"  {neighbour.score:6.3f}  {neighbour.id}  {' '.join(neighbour.text.split())}"
            for neighbour in one.neighbours
        ]
    values = [
        {"query": one.query, "neighbours": [each._asdict() for each in one.neighbours]}
        for one in found
    ]
    return Output(values, lines)
