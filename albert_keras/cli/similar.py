"""`albert-keras similar`."""

from pathlib import Path

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output, command
from albert_keras.cli.embed import lines_of_stdin


@command("albert_keras.texts.similar:similar")
def similar(arguments, corpus: Path, texts: list[str] | None = None):
    """Find the texts of a corpus that are most similar to each TEXT.

    The score is the cosine of the vectors, from -1 to 1. The search is exact.

    Examples:
      albert-keras similar sentences.npy "A boat left the harbour."
      albert-keras similar mail.csv "My invoice is wrong." --text-column body --model runs/mail

    Options:
      corpus <CORPUS>: File of vectors that `embed` wrote; or a table or text file to embed for this
        call.
      texts <TEXT>: Text to find similar ones for; without TEXT, lines of stdin.
      model (the one that embedded CORPUS): Model to embed TEXT with, as for embed; required for
        texts.
      top_k {1..}: Number of texts to find for each TEXT.
      text_column id_column
      batch_size {1..}: Texts per batch.
    """
    queries = list(texts or lines_of_stdin())
    check_files(corpus)
    from albert_keras.texts.similar import similar as find_similar

    found = find_similar(corpus, queries, **arguments)
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
