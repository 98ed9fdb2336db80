"""Weights for a larger vocabulary: old rows stay, new rows are means of old rows.

A random row would be far from all others, and the model would first have to learn not to predict
it. The mean of the rows that represented the same text is close to its meaning and about as
probable as they were.

Source:
    Fast vocabulary transfer (Gee et al. 2022, https://arxiv.org/abs/2402.09977), section 3; for
    means against random rows https://nlp.stanford.edu/~johnhew/vocab-expansion.html.
"""

import numpy as np

#: Weights with one row, or one number, per piece. The table serves input and output.
PER_PIECE = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


def extend_rows(rows, segments):
    """Adds a row for each new piece: the mean of the rows of the old pieces it replaces.

    Args:
        rows: float array [V, ...]. Rows of the old pieces; they are returned unchanged.
        segments: list of lists of int. For each new piece the ids of the old pieces of the same
            text; an id that occurs twice counts twice.

    Returns:
        Array [V + N, ...] of the same dtype.
    """
    means = [rows[segment].astype(np.float64).mean(axis=0) for segment in segments]
    return np.concatenate([rows, np.asarray(means, rows.dtype).reshape(-1, *rows.shape[1:])])
