"""Exact search for the nearest vectors, in blocks, so that memory does not grow with their number.

No index is built: a product with each vector is as fast as memory can be read, which takes seconds
for a million vectors, and finds the nearest ones without exception.
"""

from collections.abc import Iterable

import numpy as np

#: Queries that are compared with a block at a time.
_QUERIES = 256


def nearest(
    queries: np.ndarray, blocks: Iterable[np.ndarray], top_k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the vectors with the largest cosine for each query.

    Args:
        queries: float [Q, H].
        blocks: The vectors, float32 [n, H] each, in order; of any length.
        top_k: K. Vectors to find, fewer if there are not so many.

    Returns:
        float32 [Q, K], the cosines, and int64 [Q, K], the numbers of the vectors; the largest
        cosine first, and of equals the lowest number. The cosine of a vector of zeros is 0.
    """
    queries = unit_length(np.asarray(queries, np.float32))
    scores = np.zeros([len(queries), 0], np.float32)
    numbers = np.zeros([len(queries), 0], np.int64)
    begin = 0
    for block in blocks:
        inverse = _inverse_lengths(block)
        parts = [
            _best(queries[first : first + _QUERIES] @ block.T * inverse, top_k)
            for first in range(0, len(queries), _QUERIES)
        ]
        found, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        scores = np.concatenate([scores, found], axis=1)
        numbers = np.concatenate([numbers, rows + begin], axis=1)
        # Stable, and blocks are in order: of equals the lowest number comes first.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
        scores = np.take_along_axis(scores, order, axis=1)
        numbers = np.take_along_axis(numbers, order, axis=1)
        begin += len(block)
    return scores, numbers


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Returns vectors, float [N, H], divided by their lengths; zeros remain zeros."""
    return vectors * _inverse_lengths(vectors)[:, None]


def _inverse_lengths(vectors):
    lengths = np.sqrt(np.einsum("nh,nh->n", vectors, vectors))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _best(scores, count):
    """Returns the largest of scores, [Q, n] → [Q, K], and their columns, in ascending order.

    Of equal scores, the ones with the lowest columns are taken.
    """
    if count >= scores.shape[1]:
        columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
        return scores, columns
    columns = np.argpartition(-scores, count, axis=1)[:, :count]
    smallest = np.take_along_axis(scores, columns, axis=1).min(axis=1, keepdims=True)
    # A partition takes any of the scores that equal the smallest; the lowest columns are wanted.
    for row in np.flatnonzero((scores >= smallest).sum(axis=1) != count):
        columns[row] = np.argsort(-scores[row], kind="stable")[:count]
    columns = np.sort(columns, axis=1)
    return np.take_along_axis(scores, columns, axis=1), columns
