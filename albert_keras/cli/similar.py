"""`albert-keras similar`."""

import itertools
from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import plain
from albert_keras.cli.typed_inputs import text_batches


@command("albert_keras.texts.similar:similar")
def similar(arguments, corpus: Path, texts: list[str] | None = None):
    """Find the texts of a corpus that are most similar to each TEXT.

    The score is the cosine of the vectors, from -1 to 1. The search is exact.

    Examples:
      albert-keras similar sentences.npy "A boat left the harbour."
      albert-keras similar mail.npy "My invoice is wrong." --top-k 10

    Options:
      corpus <CORPUS>: File of vectors that `embed` wrote.
      texts <TEXT>: Text to find similar ones for; without TEXT, lines of stdin.
      model (the one that embedded CORPUS): The same model in another place.
      top_k {1..}: Number of texts to find for each TEXT.
      batch_size {1..}: Texts per batch.
    """
    queries = list(itertools.chain.from_iterable(text_batches(texts)))
    from albert_keras.texts.similar import similar as find_similar

    found = find_similar(corpus, queries, **arguments)
    lines = []
    for one in found:
        lines.append(" ".join(one.query.split()))
        lines += [
            f"  {neighbour.score:6.3f}  {neighbour.id}  {' '.join(neighbour.text.split())}"
            for neighbour in one.neighbours
        ]
    return Output(plain(found), lines)
