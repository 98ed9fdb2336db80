"""Texts that are longer than a sequence: windows that overlap, computed a few at a time."""

from collections.abc import Callable, Sequence

import tensorflow as tf

#: Windows that are computed at a time: their number is not limited, memory is.
WINDOWS_AT_A_TIME = 32


def lay_out_windows(totals, budget, stride):
    """Lays out windows over N texts: the text, the first token and the length of each of W windows.

    Of the `totals` tokens of a text, int64 [N], `budget` fit into a window, int64 [N] or int. The
    starts of two windows are at most `stride` apart, and the last window reaches the end; a text
    without tokens has none. The results are int64 [W].
    """
    budget = tf.broadcast_to(tf.cast(budget, tf.int64), tf.shape(totals))
    step = tf.minimum(budget, stride)
    further = -((budget - totals) // step)
    counts = tf.where(totals > 0, 1 + tf.maximum(further, 0), 0)
    numbers = tf.ragged.range(counts)
    rows = numbers.value_rowids()
    offsets = numbers.flat_values * tf.gather(step, rows)
    lengths = tf.minimum(tf.gather(totals, rows) - offsets, tf.gather(budget, rows))
    return rows, offsets, lengths


def compute_in_parts(function: Callable, outputs: Sequence[tf.TensorSpec], *inputs) -> list:
    """Calls a function of W rows for `WINDOWS_AT_A_TIME` of them at a time.

    Args:
        function: Takes parts of `inputs`, and returns tensors as `outputs` describes them.
        outputs: Types and shapes; the first dimension is the rows.
        inputs: Tensors [W, ...], or dicts of them.

    Returns:
        The results of all rows, one tensor for each of `outputs`.
    """
    count = tf.shape(tf.nest.flatten(inputs)[0])[0]
    parts = tf.maximum(-(-count // WINDOWS_AT_A_TIME), 1)
    arrays = [
        tf.TensorArray(spec.dtype, parts, infer_shape=False, element_shape=spec.shape)
        for spec in outputs
    ]

    def compute(part, arrays):
        here = slice(part * WINDOWS_AT_A_TIME, (part + 1) * WINDOWS_AT_A_TIME)
        found = function(*tf.nest.map_structure(lambda values: values[here], inputs))
        return part + 1, [
            array.write(part, value) for array, value in zip(arrays, found, strict=True)
        ]

    _, arrays = tf.while_loop(
        lambda part, _: part < parts, compute, (0, arrays), parallel_iterations=1
    )
    return [array.concat() for array in arrays]


def max_context(positions: tf.Tensor, lengths: tf.Tensor, firsts: tf.Tensor) -> tf.Tensor:
    """Returns where no other window contains more context around a token, bool [W, S].

    Of several equally good windows it is the first; False outside the context. `positions` are
    int64 [W, S], numbers of tokens from the first of their window, `lengths` and `firsts` int64
    [W]: the tokens of each window, and its first one, numbered through all contexts.

    Source:
        `_check_is_max_context` in google-research/albert, `squad_utils.py`.
    """
    lengths = lengths[:, None]
    is_inside = (positions >= 0) & (positions < lengths)
    scores = tf.cast(tf.minimum(positions, lengths - 1 - positions), tf.float64)
    scores += 0.01 * tf.cast(lengths, tf.float64)
    total = tf.maximum(tf.reduce_max(firsts[:, None] + lengths), 0)
    tokens = tf.where(is_inside, firsts[:, None] + positions, total)
    best = tf.math.unsorted_segment_max(scores, tokens, total + 1)
    is_best = is_inside & (scores == tf.gather(best, tokens))
    windows = tf.range(tf.shape(positions, tf.int64)[0])[:, None]
    numbers = tf.where(is_best, windows, tf.int64.max)
    first = tf.math.unsorted_segment_min(numbers, tokens, total + 1)
    return is_best & (windows == tf.gather(first, tokens))
