"""Embeds texts: from a list or a file to vectors in memory or in a file."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.texts.encoder import TextEncoder
from albert_keras.texts.reading import given_texts, read_texts
from albert_keras.texts.vectors import check_vector_file, write_vectors
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


class Embeddings(NamedTuple):
    """Vectors of N texts."""

    num_texts: int  # N
    size: int  # H, the numbers of a vector
    num_truncated: int  # texts that were too long and were truncated
    vectors: np.ndarray  # float32 [N, H], of length 1
    path: str | None = None  # the file that they were written to


def embed(
    model: str | Path,
    texts: Iterable[str] | None = None,
    file: str | Path | None = None,
    out: str | Path | None = None,
    text_column: str | int | None = None,
    sequence_length: int | None = None,
    batch_size: int = 64,
) -> Embeddings:
    """Computes a vector of length 1 for each of some texts.

    All vectors are in memory. Files appear when all texts are embedded, or not at all.

    Args:
        model: A trained model, see `TextEncoder`.
        texts: iterable of str. None reads `file`.
        file: Table or text file, see `read_texts` for it and `text_column`.
        out: New file that ends in .npy, see `vectors.py`. None writes none.
        sequence_length, batch_size: See `TextEncoder`.

    Returns:
        Embeddings.

    Raises:
        InputError: If texts or model cannot be used, or `out` exists.

    Example:
        embed("runs/books", ["A ferry.", "A boat."]).vectors  # [2, H]
    """
    if (texts is None) == (file is None):
        received = "none" if texts is None else "both"
        raise InputError(f"Either `texts` or `file` must be given. Received: {received}.")
    if file is None and text_column is not None:
        raise InputError("`text_column` requires `file`. Received: `texts`.")
    if out is not None:
        check_vector_file(Path(out))
    rows = given_texts(texts) if texts is not None else read_texts(str(file), text_column)
    if not rows:
        raise InputError("There must be at least one text to embed. Received: none.")
    encoder = TextEncoder(model, sequence_length, batch_size)
    found = encoder.encode(rows)
    if out is not None:
        write_vectors(Path(out), rows, found.vectors, encoder.describe())
    if found.num_truncated:
        logger.warning(
            "%s of %s texts have more than %d tokens and were truncated (`sequence_length`).",
            f"{found.num_truncated:,}",
            f"{len(rows):,}",
            encoder.sequence_length,
        )
    return Embeddings(
        num_texts=len(rows),
        num_truncated=found.num_truncated,
        size=encoder.size,
        vectors=found.vectors,
        path=None if out is None else str(out),
    )
