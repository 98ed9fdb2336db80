"""`albert-keras embed` and `similar`."""

import itertools
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Step, TextColumn
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
    id_column: Annotated[
        str | None, Option(metavar="COLUMN", show_default="the number of the row")
    ] = None,
    pooling: Annotated[
        str | None,
        Option(
            metavar="[mean|cls|pooler]",
            show_default="as in the training for similarity, otherwise mean",
        ),
    ] = None,
    normalize: bool = False,
    sequence_length: Annotated[
        int | None, Option("--max-seq-length", show_default="as in training")
    ] = None,
    batch_size: Annotated[int, Option(min=1)] = 64,
    step: Step = None,
    overwrite: bool = False,
):
    """Embed texts: write a vector for each.

    Examples:
      albert-keras embed runs/books --file sentences.txt --out sentences.npy
      albert-keras embed runs/books --file mail.csv --text-column body --id-column id \\
          --out mail.npy --normalize
      cat sentences.txt | albert-keras embed saved_models/books --out sentences.npy

    Args:
      model: Run, fine-tuning, export, name of a shipped model, hf://OWNER/NAME, checkpoint or
        .keras file.
      texts: Text to embed; without TEXT and --file, lines of stdin.
      out: File of vectors to write, .npy; ids and texts are written next to it.
      file: Table (.tsv, .csv, .jsonl), or text file with a text on each line.
      id_column: Column of the id in a table.
      pooling: How the vector of a text is computed.
      normalize: Divide each vector by its length.
      sequence_length: Tokens after which a text is truncated.
      batch_size: Texts per batch.
      overwrite: Replace the files of --out.
    """
    check_files(file)
    if texts or file is None:
        given["texts"] = itertools.chain.from_iterable(text_batches(texts))
    from albert_keras.texts.embed import embed as embed_texts

    result = embed_texts(**given)
    values = result._asdict() | {"settings": result.settings._asdict()}
    del values["vectors"], values["ids"]
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
    model: Annotated[Path | None, Option(show_default="the one that embedded CORPUS")] = None,
    top_k: Annotated[int, Option(min=1)] = 5,
    batch_size: Annotated[int, Option(min=1)] = 64,
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
      model: The same model in another place.
      top_k: Number of texts to find for each TEXT, or of pairs.
      batch_size: Texts per batch.
    """
    if pairs and queries:
        raise InputError("Give either TEXT or --pairs.")
    texts = None if pairs else list(itertools.chain.from_iterable(text_batches(queries)))
    from albert_keras.texts.similar import similar as find_similar

    found = find_similar(corpus, texts, model, top_k, batch_size)
    lines = []
    for one in found:
        lines.append(" ".join(one.query.split()))
        lines += [
            f"  {neighbour.score:6.3f}  {neighbour.id}  {' '.join(neighbour.text.split())}"
            for neighbour in one.neighbours
        ]
    return Output(found, lines)
