"""Finds the texts that are most similar to others, by the cosine of their vectors."""

import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.texts.encoder import TextEncoder
from albert_keras.texts.reading import given_texts
from albert_keras.texts.vectors import read_vectors
from data_pipeline.errors import InputError

#: Vectors that are compared with those of a corpus at a time.
_BLOCK = 64


class Neighbour(NamedTuple):
    """A text that was found."""

    row: int  # of the corpus, from 0
    score: float  # the cosine with the query, from -1 to 1
    text: str


class SimilarTexts(NamedTuple):
    """The most similar texts of a corpus."""

    query: str
    neighbours: tuple[Neighbour, ...]  # the most similar one first


def similar(
    corpus: str | Path,
    queries: Sequence[str] | None,
    top_k: int = 5,
) -> list[SimilarTexts]:
    """Finds the texts of a corpus that are most similar to each query, or to each other.

    The search is exact: each vector of the corpus is compared.

    Args:
        corpus: File of vectors that `embed` wrote.
        queries: Texts. They are embedded by the model that embedded the corpus, where its
            description says that it is. None compares the texts of the corpus with each other.
        top_k: Texts to find for each query; without queries, pairs to find in the corpus.

    Returns:
        list of SimilarTexts, in the order of the queries. Without queries, the most similar pairs,
        the best one first: the earlier text of a pair is the query, the other one its neighbour.

    Raises:
        InputError: If the corpus cannot be used, or the model changed after it embedded it.

    Example:
        similar("books.npy", ["A boat left the harbour."])[0].neighbours[0].text
    """
    if top_k < 1:
        raise InputError(f"`top_k` must be at least 1. Received: {top_k}.")
    file = read_vectors(corpus)
    if queries is None:
        return _pairs(file, top_k)
    if isinstance(queries, str) or not queries:
        raise InputError("`queries` must be a list of at least one text.")
    texts = given_texts(queries)
    encoder = _encoder_of(file)
    found = nearest(encoder.encode(texts).vectors, file.vectors, top_k)
    return [
        SimilarTexts(text, _neighbours(file, numbers, scores))
        for text, scores, numbers in zip(texts, *map(np.ndarray.tolist, found), strict=True)
    ]


def _neighbours(file, numbers, scores):
    return tuple(
        Neighbour(number, score, file.texts[number])
        for number, score in zip(numbers, scores, strict=True)
    )


def _pairs(file, top_k):
    """Returns the most similar pairs of the texts of a VectorFile."""
    best: list[tuple[float, int, int]] = []
    for begin in range(0, len(file.texts), _BLOCK):
        block = file.vectors[begin : begin + _BLOCK]
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
        SimilarTexts(file.texts[first], _neighbours(file, [second], [-score]))
        for score, first, second in best
    ]


def nearest(queries: np.ndarray, vectors: np.ndarray, top_k: int) -> tuple[np.ndarray, np.ndarray]:
    """Finds the vectors with the largest cosine for each query, without an index.

    Args:
        queries: float32 [Q, H], of length 1.
        vectors: float32 [N, H], of length 1.
        top_k: K. Vectors to find, fewer if there are not so many.

    Returns:
        float32 [Q, K], the cosines, and int64 [Q, K], the numbers of the vectors; the largest
        cosine first, and of equals the lowest number.
    """
    blocks = []
    for begin in range(0, len(queries), _BLOCK):
        scores = queries[begin : begin + _BLOCK] @ vectors.T
        numbers = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        blocks.append((np.take_along_axis(scores, numbers, axis=1), numbers))
    scores, numbers = map(np.concatenate, zip(*blocks, strict=True))
    return scores, numbers


def _encoder_of(file):
    """Returns a TextEncoder with the model that made the vectors of a file."""
    encoder = TextEncoder(file.model, file.sequence_length)
    if (encoder.digest, encoder.tokenizer.digest) != file.digests:
        raise InputError(
            f"The queries must be embedded by the model that embedded `{file.path}` (digest "
            f"{file.digests[0][:8]}). `{file.model}` has other weights now (digest "
            f"{encoder.digest[:8]}). Embed the corpus again."
        )
    return encoder
