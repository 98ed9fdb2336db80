"""Weights for more positions: a longer table with copies of trained ones."""

from typing import Any

import numpy as np
import tensorflow as tf


def copied_positions(seen: int, length: int, offset: int = 0) -> np.ndarray:
    """Returns from which row of the position table each row of a longer table is copied.

    The new rows repeat the trained rows in order, except for the first and the last trained row,
    which belong to [CLS] and to the final [SEP]. Neighbours stay neighbours, so that attention to
    words nearby works at once.

    Args:
        seen: Longest sequence in training, in tokens, at least 3.
        length: Longest sequence of the longer table.
        offset: Number of rows before the row of the first token, see AlbertConfig.

    Returns:
        int [offset + length].
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
