"""Rows for a model, and the numbers that it returns for them. No TensorFlow here."""

import abc
from typing import Any

import numpy as np

from data_pipeline.errors import InputError


class Features(abc.ABC):
    """N rows for a model."""

    lengths: np.ndarray  # int [N], tokens of each row without padding; of sequences the longest
    max_seq_length: int  # S
    #: int [number of examples], tokens that did not fit into the rows. Tagging drops none.
    dropped_tokens: np.ndarray
    weights: np.ndarray | None = None  # float32 [N], how much rows count in training; None is 1
    #: The `labels` of all rows, an array, if there are any; in tagging the tags of all words, int64
    #: [words].
    targets: Any = None

    def __len__(self):
        return len(self.lengths)

    @abc.abstractmethod
    def batch(self, rows, length: int | None = None) -> dict[str, np.ndarray]:
        """Lays out some rows.

        Args:
            rows: int [B].
            length: Length of each row; not less than the longest of `rows`. None is S.

        Returns:
            dict of int32 [B, length] (choice: [B, options, length], similarity: [B, 2, length])
            `input_ids`, `input_mask`, `segment_ids`, for spans `p_mask` too; and the targets, if
            the examples have any: `labels` int32 [B] (classification, choice) or float32 [B]
            (regression, similarity with scores); `tag_ids` int32 [B, length], -1 where nothing is
            scored; for spans int32 [B] `start_positions`, `end_positions` and `is_impossible`.

        Raises:
            InputError: If `length` is too short for a row.
        """


def with_dropped_tokens(answers: list, features: Features | None) -> list:
    """Returns answers with the `dropped_tokens` of the features that they were computed from."""
    if features is None:
        return answers
    pairs = zip(answers, features.dropped_tokens.tolist(), strict=True)
    return [answer._replace(dropped_tokens=count) for answer, count in pairs]


def logits_of(outputs: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the `logits` of a model, float64 of the required shape.

    Raises:
        InputError: If the array has another shape, or a number in it is not finite.
    """
    check_numbers(outputs)
    values = np.asarray(outputs["logits"]).astype(np.float64)
    if values.shape != tuple(shape):
        raise InputError(
            f"The `logits` of a model must be {list(shape)}. Received: {list(values.shape)}."
        )
    return values


def check_numbers(outputs: dict[str, np.ndarray]):
    """Raises InputError if an output is NaN or infinite."""
    for name, array in outputs.items():
        faults = np.count_nonzero(~np.isfinite(array))
        if faults:
            raise InputError(
                f"{faults} of {np.size(array)} `{name}` of the model are not finite. Its training "
                "may have diverged; a lower learning rate may help."
            )
