"""Weights for more positions and for a larger vocabulary, made of trained ones."""

from typing import Any

import numpy as np
import tensorflow as tf

#: Weights with one row, or one number, per piece. The table serves input and output.
PER_PIECE = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


def extend_rows(rows, segments):
    """Adds a row for each new piece: the mean of the rows of the old pieces it replaces.

    A random row would be far from all others, and the model would first have to learn not to
    predict it. The mean is close to the meaning of the text and about as probable.

    Args:
        rows: float array [V, ...]. Rows of the old pieces, which begin the result, [V + N, ...].
        segments: list of lists of int. For each new piece the ids of the old pieces of the same
            text; an id that occurs twice counts twice.

    Source:
        Fast vocabulary transfer (Gee et al. 2022, https://arxiv.org/abs/2402.09977), section 3; for
        means against random rows https://nlp.stanford.edu/~johnhew/vocab-expansion.html.
    """
    means = [rows[segment].astype(np.float64).mean(axis=0) for segment in segments]
    return np.concatenate([rows, np.asarray(means, rows.dtype).reshape(-1, *rows.shape[1:])])


def copied_positions(seen: int, length: int, offset: int = 0) -> np.ndarray:
    """Returns from which row of the position table each row of a longer table is copied.

    The new rows repeat the trained rows in order, except for the first and the last trained row,
    which belong to [CLS] and to the final [SEP]. Neighbours stay neighbours, so that attention to
    words nearby works at once.

    Args:
        seen: Longest sequence in training, in tokens, at least 3.
        length: Longest sequence of the longer table, which has `offset + length` rows.
        offset: Number of rows before the row of the first token, see AlbertConfig.
    """
    rows = np.arange(offset + length)
    if length > seen:
        rows[offset + seen :] = offset + 1 + np.arange(length - seen) % (seen - 2)
    return rows


def extend_positions(model: Any, optimizer: Any, seen: int, length: int) -> bool:
    """Copies the embeddings of trained positions, with their moments, to positions not seen before.

    For the copies see `copied_positions`. Call it in the scope of the strategy.

    Args:
        model: AlbertForPretraining.
        optimizer: keras Optimizer. Its moments exist.
        seen: int. Longest sequence until now, in tokens, at least 3.
        length: int. Longest sequence from now on.

    Returns:
        Whether there is something to copy: rotary positions have no table.
    """
    table = model.encoder.embeddings.position_embeddings
    if table is None:
        return False
    moments = optimizer.moments_of(table).values()
    rows, offset = np.arange(table.shape[0]), model.config.position_offset
    rows[: offset + length] = copied_positions(seen, length, offset)
    for variable in (table, *moments):
        variable.assign(tf.gather(tf.convert_to_tensor(variable), rows))
    return True
