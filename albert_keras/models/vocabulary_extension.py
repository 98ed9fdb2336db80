"""A larger vocabulary: the rows of the old pieces stay, those of new ones are means of old rows.

A random row would be far from all others, and the first thing a model learns would be not to
predict it. The mean of the rows that stood for the same text is near to what it means, and as
probable as they were.

Source:
    Fast vocabulary transfer (Gee et al. 2022, https://arxiv.org/abs/2402.09977), section 3; for
    means against random rows https://nlp.stanford.edu/~johnhew/vocab-expansion.html.
"""

import numpy as np
import tensorflow as tf

#: Weights with a row, or a number, for each piece. The table serves input and output.
PER_PIECE = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


def extend_rows(rows, segments):
    """Adds a row for each new piece: the mean of the rows of its old pieces.

    Args:
        rows: float array [V, ...]. Those of the old pieces; they come back bit by bit.
        segments: list of lists of int. For each new piece the ids of the old ones that stood for
            the same text; one that stands twice counts twice.

    Returns:
        Array [V + N, ...] of the same dtype.
    """
    means = [rows[segment].astype(np.float64).mean(axis=0) for segment in segments]
    return np.concatenate([rows, np.asarray(means, rows.dtype).reshape(-1, *rows.shape[1:])])


class ExtendedTensors:
    """The tensors of a source as if it had been trained with a larger vocabulary.

    Args:
        tensors: CheckpointTensors or another with its attributes.
        segments: list of lists of int. As of `extend_rows`.

    Attributes:
        shapes: dict of str to list of int. By name.
        types: dict of str to tf.DType.
    """

    def __init__(self, tensors, segments):
        self._tensors, self._segments = tensors, segments
        self.types = dict(tensors.types)
        self.shapes = {name: list(shape) for name, shape in tensors.shapes.items()}
        for name in PER_PIECE:
            if name in self.shapes and tf.as_dtype(self.types[name]).is_floating:
                self.shapes[name][0] += len(segments)

    def read(self, name):
        """Reads a tensor: array."""
        values = self._tensors.read(name)
        if self.shapes[name] == list(values.shape):
            return values
        return extend_rows(values, self._segments)
