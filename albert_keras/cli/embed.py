"""`albert-keras embed` and `similar`."""

import itertools
from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import shell
from albert_keras.cli.typed_inputs import text_batches
from albert_keras.report import count_of
from data_pipeline.errors import InputError


@command("albert_keras.texts.embed:embed")
def embed(call, out: Path, texts: list[str] | None = None, layers: str = "last"):
    """Embed texts: write a vector for each.

    Examples:
      albert-keras embed runs/books --file sentences.txt --out sentences.npy
      albert-keras embed runs/books --file mail.csv --text-column body --id-column id \\
          --out mail.npy --normalize
      cat sentences.txt | albert-keras embed saved_models/books --out sentences.npy

    Options:
      model <MODEL>: Run, fine-tuning, export, name of a shipped model, checkpoint or .keras file.
      texts <TEXT>: Text to embed; without TEXT and --file, lines of stdin.
      out: File of vectors to write, .npy; ids and texts are written next to it.
      file: Table (.tsv, .csv, .jsonl), or text file with a text on each line.
      text_column id_column
      pooling [mean|cls|pooler] (as in the training for similarity, otherwise mean): How the vector
        of a text is computed.
      layers last|LAYER,...: Layers whose outputs are averaged, separated by commas: 1 is the first,
        -1 the last.
      normalize: Divide each vector by its length.
      max_seq_length (as in training): Tokens after which a text is truncated.
      batch_size {1..}: Texts per batch.
      step
      overwrite: Replace the files of --out.
    """
    has_texts = texts or "file" not in call.given
    source = itertools.chain.from_iterable(text_batches(texts)) if has_texts else None
    result = call(texts=source, layers=_parse_layers(layers), out=out)
    values = result._asdict() | {"settings": result.settings._asdict()}
    del values["vectors"], values["ids"]
    lines = [
        f"{count_of(result.num_texts, 'vector')} of {result.size} numbers, "
        f"{count_of(result.num_truncated, 'text')} truncated: {out}",
        f"next: {shell('albert-keras', 'similar', out, 'TEXT')}",
    ]
    return Output(values, lines)


@command("albert_keras.texts.similar:similar")
def similar(call, corpus: Path, queries: list[str] | None = None):
    """Find the texts of a corpus that are most similar to each TEXT.

    The score is the cosine of the vectors, from -1 to 1. The search is exact.

    Examples:
      albert-keras similar sentences.npy "A boat left the harbour."
      albert-keras similar mail.npy "My invoice is wrong." --top-k 10

    Options:
      corpus <CORPUS>: File of vectors that `embed` wrote.
      queries <TEXT>: Text to find similar ones for; without TEXT, lines of stdin.
      model (the one that embedded CORPUS): The same model in another place.
      top_k {1..}: Number of texts to find for each TEXT.
      batch_size {1..}: Texts per batch.
    """
    found = call(corpus, list(itertools.chain.from_iterable(text_batches(queries))))
    lines = []
    for one in found:
        lines.append(" ".join(one.query.split()))
        lines += [
            f"  {neighbour.score:6.3f}  {neighbour.id}  {' '.join(neighbour.text.split())}"
            for neighbour in one.neighbours
        ]
    return Output(found, lines)


def _parse_layers(text):
    if text == "last":
        return (-1,)
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            "`--layers` must be `last`, or numbers of layers separated by commas, such as -2,-1. "
            f"Received: {text}."
        ) from None
