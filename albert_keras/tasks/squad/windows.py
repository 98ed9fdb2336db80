"""How a long passage is cut into windows that overlap."""

from typing import ClassVar

import numpy as np

from data_pipeline.settings import Rule, Settings


class SquadWindowConfig(Settings):
    """How passages are cut into windows.

    Attributes:
        max_seq_length: int. Places of a window, S.
        doc_stride: int. How many pieces of the passage a window starts after the one before.
        max_query_length: int. Pieces of a question that are read; the rest is cut off.
    """

    max_seq_length: int = 384
    doc_stride: int = 128
    max_query_length: int = 64

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(("doc_stride",), lambda stride: stride > 0, "should be at least 1"),
        Rule(("max_query_length",), lambda length: length >= 0, "should not be negative"),
        Rule(
            ("max_seq_length", "max_query_length"),
            lambda length, query: length > query + 3,
            "should be more than `max_query_length` + 3, for three symbols and the passage",
        ),
    )


def lay_out_windows(total: int, budget: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first piece and the number of pieces of each window over a passage.

    Args:
        total: int. Pieces of the passage.
        budget: int. The most that fit into a window.
        stride: int. From the start of a window to the start of the next, at most.

    Returns:
        int64 [K], int64 [K]. The last window reaches the end; there is none if `total` is 0.
    """
    step = min(budget, stride)
    count = 1 + max(0, -(-(total - budget) // step)) if total else 0
    offsets = np.arange(count) * step
    return offsets, np.minimum(total - offsets, budget)


def max_context(offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns for each piece of a passage the window that shows most of what is around it.

    Args:
        offsets, lengths: int64 [K]. As from `lay_out_windows`.

    Returns:
        int64 [T]. The first of several windows that are equally good.

    Source:
        `_check_is_max_context` in google-research/albert, `squad_utils.py`.
    """
    if not len(offsets):
        return np.zeros(0, np.int64)
    pieces = np.arange(offsets[-1] + lengths[-1])
    best, best_score = np.zeros(len(pieces), np.int64), np.full(len(pieces), -np.inf)
    for window, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        inside = slice(offset, offset + length)
        left, right = pieces[:length], pieces[:length][::-1]
        score = np.minimum(left, right) + 0.01 * length
        better = score > best_score[inside]
        best[inside][better], best_score[inside][better] = window, score[better]
    return best
