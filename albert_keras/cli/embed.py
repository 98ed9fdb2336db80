"""`albert-keras embed` and `similar`."""

import itertools
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import TextColumn
from albert_keras.cli.output import shell
from albert_keras.cli.typed_inputs import text_batches
from albert_keras.report import count_of
from data_pipeline.errors import InputError


@command()
def embed(
    given,
    *,
    model: Path,
    texts: Annotated[list[str] | None, Argument(metavar="TEXT")] = None,
    out: Annotated[Path, Option()],
    file: Path | None = None,
    text_column: TextColumn = None,
    sequence_length: Annotated[
        int | None, Option("--max-seq-length", show_default="as in training")
    ] = None,
    batch_size: Annotated[int, Option(min=1)] = 64,
):
    """Embed texts: write a vector of length 1 for each.

    Examples:
      albert-keras embed runs/books --file sentences.txt --out sentences.npy
      albert-keras embed runs/books --file mail.csv --text-column body --out mail.npy
      cat sentences.txt | albert-keras embed saved_models/books --out sentences.npy

    Args:
      model: Run, fine-tuning, export, name of a shipped model, hf://OWNER/NAME, checkpoint or
        .keras file.
      texts: Text to embed; without TEXT and --file, lines of stdin.
      out: File of vectors to write, .npy; the texts are written next to it.
      file: Table (.tsv, .csv, .jsonl), or text file with a text on each line.
      sequence_length: Tokens after which a text is truncated.
      batch_size: Texts per batch.
    """
    check_files(file)
    if texts or file is None:
        given["texts"] = itertools.chain.from_iterable(text_batches(texts))
    from albert_keras.texts.embed import embed as embed_texts

    result = embed_texts(**given)
    values = result._asdict()
    del values["vectors"]
    lines = [
        f"{count_of(result.num_texts, 'vector')} of {result.size} numbers, "
        f"{count_of(result.num_truncated, 'text')} truncated: {out}",
        f"next: {shell('albert-keras', 'similar', out, 'TEXT')}",
    ]
    return Output(values, lines)


@command()
def similar(
    corpus: Path,
    queries: Annotated[list[str] | None, Argument(metavar="TEXT")] = None,
    pairs: bool = False,
    top_k: Annotated[int, Option(min=1)] = 5,
):
    """Find the texts of a corpus that are most similar to each TEXT, or its most similar pairs.

    The score is the cosine of the vectors, from -1 to 1. The search is exact.

    Examples:
      albert-keras similar sentences.npy "A boat left the harbour."
      albert-keras similar mail.npy "My invoice is wrong." --top-k 10
      albert-keras similar mail.npy --pairs --top-k 100

    Args:
      corpus: File of vectors that `embed` wrote.
      queries: Text to find similar ones for; without TEXT, lines of stdin.
      pairs: Compare the texts of the corpus with each other, instead of TEXT with them.
      top_k: Number of texts to find for each TEXT, or of pairs.
    """
    if pairs and queries:
        raise InputError("Give either TEXT or --pairs.")
    texts = None if pairs else list(itertools.chain.from_iterable(text_batches(queries)))
    from albert_keras.texts.similar import similar as find_similar

    found = find_similar(corpus, texts, top_k)
    lines = []
    for one in found:
        lines.append(" ".join(one.query.split()))
        lines += [
            f"  {neighbour.score:6.3f}  {neighbour.row}  {' '.join(neighbour.text.split())}"
            for neighbour in one.neighbours
        ]
    return Output(found, lines)
