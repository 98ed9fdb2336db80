"""Finds the texts that are most similar to others, by the cosine of their vectors."""

import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.formats.detection import detect
from albert_keras.texts.encoder import TextEncoder
from albert_keras.texts.reading import given_texts
from albert_keras.texts.vectors import VectorFile
from data_pipeline.errors import InputError

#: Vectors of a corpus that are compared at a time, and with how many of the same corpus.
_BLOCK, _QUERIES = 16_384, 64


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
    queries: Sequence[str] | None,
    model: str | Path | None = None,
    top_k: int = 5,
    batch_size: int = 64,
) -> list[SimilarTexts]:
    """Finds the texts of a corpus that are most similar to each query, or to each other.

    The search is exact: each vector of the corpus is compared, in blocks of bounded memory.

    Args:
        corpus: File of vectors that `embed` wrote.
        queries: Texts. They are embedded with the settings of the corpus. None compares the texts
            of the corpus with each other.
        model: A trained model, see `TextEncoder`. None takes the one that embedded the corpus.
        top_k: Texts to find for each query; without queries, pairs to find in the corpus.
        batch_size: Texts per call of the model.

    Returns:
        list of SimilarTexts, in the order of the queries. Without queries, the most similar pairs,
        the best one first: the earlier text of a pair is the query, the other one its neighbour.

    Raises:
        InputError: If corpus or model cannot be used, or if the model is not the one that embedded
            the corpus.

    Example:
        similar("books.npy", ["A boat left the harbour."])[0].neighbours[0].text
    """
    if top_k < 1:
        raise InputError(f"`top_k` must be at least 1. Received: {top_k}.")
    file = VectorFile(corpus)
    if queries is None:
        return _pairs(file, top_k)
    if isinstance(queries, str) or not queries:
        raise InputError("`queries` must be a list of at least one text.")
    texts = [row.text for row in given_texts(queries)]
    encoder, stored = _encoder_of(file, model, batch_size), file.texts()
    found = nearest(encoder.encode(texts).vectors, file.vectors, top_k)
    return [
        SimilarTexts(text, _neighbours(stored, numbers, scores))
        for text, scores, numbers in zip(texts, *map(np.ndarray.tolist, found), strict=True)
    ]


def _neighbours(stored, numbers, scores):
    return tuple(
        Neighbour(stored[number].id, score, stored[number].text)
        for number, score in zip(numbers, scores, strict=True)
    )


def _pairs(file, top_k):
    """Returns the most similar pairs of the texts of a VectorFile."""
    stored = file.texts()
    best: list[tuple[float, int, int]] = []
    for begin in range(0, len(stored), _QUERIES):
        block = file.vectors[begin : begin + _QUERIES]
        # Each text finds itself, and the earlier text of a pair has at most K later ones to name.
        scores, numbers = nearest(block, file.vectors[begin:], top_k + len(block))
        rows, columns = np.nonzero(numbers > np.arange(len(block))[:, None])
        pairs = zip(
            (-scores[rows, columns]).tolist(),
            (begin + rows).tolist(),
            (begin + numbers[rows, columns]).tolist(),
            strict=True,
        )
        best = heapq.nsmallest(top_k, [*best, *pairs])
    return [
        SimilarTexts(stored[first].text, _neighbours(stored, [second], [-score]))
        for score, first, second in best
    ]


def nearest(queries: np.ndarray, vectors: np.ndarray, top_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds the vectors with the largest cosine for each query, without an index.

    Args:
        queries: float [Q, H].
        vectors: float32 [N, H].
        top_k: K. Vectors to find, fewer if there are not so many.

    Returns:
        float32 [Q, K], the cosines, and int64 [Q, K], the numbers of the vectors; the largest
        cosine first, and of equals the lowest number. The cosine of a vector of zeros is 0.
    """
    queries = _unit_length(np.asarray(queries, np.float32))
    scores = np.zeros([len(queries), 0], np.float32)
    numbers = np.zeros([len(queries), 0], np.int64)
    for begin in range(0, len(vectors), _BLOCK):
        block = _unit_length(np.asarray(vectors[begin : begin + _BLOCK], np.float32))
        own = np.broadcast_to(np.arange(begin, begin + len(block)), [len(queries), len(block)])
        scores = np.concatenate([scores, queries @ block.T], axis=1)
        numbers = np.concatenate([numbers, own], axis=1)
        # Stable, and blocks are in order: of equals the lowest number comes first.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        scores = np.take_along_axis(scores, order, axis=1)
        numbers = np.take_along_axis(numbers, order, axis=1)
    return scores, numbers


def _unit_length(vectors):
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _encoder_of(file, model, batch_size):
    """Returns a TextEncoder with the model and the settings that made the vectors of a file."""
    # Only runs have several steps.
    place = detect(file.model if model is None else model)
    step = file.step if model is None and place.kind == "run" else None
    encoder = TextEncoder(place, *file.settings, batch_size, step=step)
    if (encoder.digest, encoder.tokenizer.digest) != file.digests:
        raise InputError(
            f"The queries must be embedded by the model that embedded `{file.path}`, "
            f"{file.model} (digest {file.digests[0][:8]}). Received: {encoder.origin} "
            f"(digest {encoder.digest[:8]}). Embed the corpus again, or give that model."
        )
    return encoder
