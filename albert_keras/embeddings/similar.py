"""Finds the texts that are most similar to others, by the cosine of their vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from albert_keras.embeddings.embed import CHUNK
from albert_keras.embeddings.search import nearest
from albert_keras.embeddings.text_encoder import EmbeddingSettings, TextEncoder
from albert_keras.embeddings.texts import Text, given_texts, in_chunks, read_texts
from albert_keras.embeddings.vector_files import VectorFile, is_vector_file
from data_pipeline.errors import InputError
from data_pipeline.text import storage


class Neighbour(NamedTuple):
    """A text that was found."""

    id: str  # as in the corpus
    score: float  # the cosine with the query, from -1 to 1
    text: str


class SimilarTexts(NamedTuple):
    """The most similar texts of a corpus."""

    query: str
    neighbours: tuple[Neighbour, ...]  # the most similar one first


def similar(
    corpus: str | Path,
    queries: Sequence[str],
    model: str | Path | None = None,
    top_k: int = 5,
    text_column: str | int | None = None,
    id_column: str | int | None = None,
    batch_size: int = 64,
) -> list[SimilarTexts]:
    """Finds the texts of a corpus that are most similar to each query.

    The search is exact: each vector of the corpus is compared, in blocks of bounded memory.

    Args:
        corpus: File that `embed` wrote; or a table or text file, which is embedded for this call
            with the default settings, see `read_texts` for its columns.
        queries: Texts. They are embedded with the settings of the corpus.
        model: A trained model, see `TextEncoder`. None takes the one that embedded the corpus.
        top_k: Texts to find for each query.
        batch_size: Texts per call of the model.

    Returns:
        list of SimilarTexts, in the order of the queries.

    Raises:
        InputError: If corpus or model cannot be used, or if the model is not the one that embedded
            the corpus.

    Example:
        similar("books.npy", ["A boat left the harbour."])[0].neighbours[0].text
    """
    if top_k < 1:
        raise InputError(f"`top_k` must be at least 1. Received: {top_k}.")
    if isinstance(queries, str) or not queries:
        raise InputError("`queries` must be a list of at least one text.")
    texts = [row.text for row in given_texts(queries)]
    source: VectorFile | _TextFile
    is_embedded = is_vector_file(corpus)
    if is_embedded and (text_column is not None or id_column is not None):
        raise InputError(
            f"Columns are for tables. Received: `{corpus}`, which contains vectors already."
        )
    if is_embedded:
        source = embedded = VectorFile(corpus)
        encoder = _encoder_of(embedded, model, batch_size)
    else:
        storage.open_to_read(corpus).close()  # fails for a file that does not exist
        if model is None:
            raise InputError(
                f"`model` (--model) must be given to embed `{corpus}`, which contains texts."
            )
        rows = read_texts(corpus, text_column, id_column)  # its errors come before the model
        encoder = TextEncoder(model, batch_size=batch_size)
        source = _TextFile(encoder, corpus, text_column, id_column, rows)
    scores, numbers = nearest(encoder.encode(texts).vectors, source.blocks(), top_k)
    if not numbers.size:
        raise InputError(f"`{corpus}` must contain at least one text. It is empty.")
    found = source.lookup(set(numbers.ravel().tolist()))
    return [
        SimilarTexts(
            text,
            tuple(
                Neighbour(found[number].id, score, found[number].text)
                for score, number in zip(*row, strict=True)
            ),
        )
        for text, *row in zip(texts, scores.tolist(), numbers.tolist(), strict=True)
    ]


def _encoder_of(source, model, batch_size):
    """Returns a TextEncoder with the model and the settings that made the vectors of a file."""
    about = source.description
    required = ("model", "encoder_digest", "tokenizer_digest", *EmbeddingSettings._fields)
    missing = [name for name in required if name not in about]
    if missing:
        raise InputError(
            f"The description of `{source.path}` is damaged: it has no {', '.join(missing)}. Embed "
            "the corpus again."
        )
    encoder = TextEncoder(
        about["model"] if model is None else model,
        about["pooling"],
        about["layers"],
        about["normalize"],
        about["max_seq_length"],
        batch_size,
        step=None if model is not None else _step(about),
    )
    if (encoder.digest, encoder.tokenizer.digest) != (
        about["encoder_digest"],
        about["tokenizer_digest"],
    ):
        raise InputError(
            f"The queries must be embedded by the model that embedded `{source.path}`, "
            f"{about['model']} (digest {about['encoder_digest'][:8]}). Received: {encoder.origin} "
            f"(digest {encoder.digest[:8]}). Embed the corpus again, or give that model."
        )
    return encoder


def _step(about):
    """Returns the step to open a model with; only runs have several."""
    return about.get("step") if (Path(about["model"]) / "run.json").is_file() else None


class _TextFile:
    """A file of texts, with the interface of VectorFile; it is read once more for the texts."""

    def __init__(self, encoder, path, text_column, id_column, rows):
        self._encoder, self._rows = encoder, rows
        self._file = (path, text_column, id_column)

    def blocks(self):
        for chunk in in_chunks(self._rows, CHUNK):
            yield self._encoder.encode([row.text for row in chunk]).vectors

    def lookup(self, rows) -> dict[int, Text]:
        return {row: text for row, text in enumerate(read_texts(*self._file)) if row in rows}
