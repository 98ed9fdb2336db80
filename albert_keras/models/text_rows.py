"""Texts as rows for a model: tokenized once, kept without padding, laid out batch by batch."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras.models.answers import check_finite
from albert_keras.models.preprocessor import TextPreprocessor
from data_pipeline.errors import InputError

#: Examples that are packed, or read out, at a time.
_AT_ONCE = 256
#: Lengths to which rows of a batch are padded are multiples of it.
_MULTIPLE = 16
#: Values of features where there is no token; the others are 0. They are those of the packers.
_FILLERS = {"p_mask": 1, "tag_ids": -1}


class Rows:
    """N rows for a model: what trains, predicts and distils reads.

    Attributes:
        lengths: int64 [N]. Tokens of each row without padding; of several sequences the longest.
        max_seq_length: int. S.
        weights: float32 [N], how much rows count in training; None is 1.
        targets: What the rows are to learn, see `AlbertForTexts.targets_of`; None if nothing.
    """

    lengths: np.ndarray
    max_seq_length: int
    weights: np.ndarray | None = None
    targets: Any = None

    def __len__(self) -> int:
        return len(self.lengths)

    def shortest_length(self, rows: np.ndarray) -> int:
        """Returns the next multiple of 16 of the tokens of some rows, int [B]; at most S."""
        longest = int(self.lengths[rows].max())
        return min(self.max_seq_length, -(-longest // _MULTIPLE) * _MULTIPLE)

    def batch(self, rows: np.ndarray, length: int | None = None) -> dict[str, np.ndarray]:
        """Lays out some rows.

        Args:
            rows: int [B].
            length: Length of each row; not less than the longest of `rows`. None is S.

        Returns:
            dict of [B, ...]. The features, and the targets, if there are any.
        """
        raise NotImplementedError


class TextRows(Rows):
    """Rows of the texts of examples, as a preprocessor makes them.

    Args:
        preprocessor: TextPreprocessor.
        columns: N texts or lists of texts by name, see `TextPreprocessor.fields`.
        targets: See `AlbertForTexts.targets_of`; None for texts that are only answered.
        weights: float32 [N], how much each example counts in training, or None.

    Raises:
        InputError: If texts or targets are wrong, or there is no row to learn from.
    """

    def __init__(
        self,
        preprocessor: TextPreprocessor,
        columns: Mapping[str, Sequence[Any]],
        targets: Any = None,
        weights: np.ndarray | None = None,
    ):
        self.max_seq_length, self.targets = preprocessor.sequence_length, targets
        self._columns = columns
        self._fillers = _FILLERS | {"input_ids": preprocessor.tokenizer.pad_id}
        # Of windows the targets are those of their rows, and are packed with them.
        by_row = targets if isinstance(targets, Mapping) else {}
        self._labels = None if isinstance(targets, Mapping) else targets
        if weights is not None and preprocessor.uses_windows:
            by_row = {**by_row, "sample_weight": weights}
        count = len(next(iter(columns.values()), ()))
        parts = []
        #: The first example, the first row, and `origin` of each part that was packed.
        self._parts: list[tuple[int, int, Any]] = []
        num_rows = 0
        for begin in range(0, count, _AT_ONCE):
            here = slice(begin, begin + _AT_ONCE)
            texts = preprocessor.columns({name: one[here] for name, one in columns.items()})
            wanted = {name: _tensor_of(values[here]) for name, values in by_row.items()}
            packed = preprocessor.packed(texts, False, wanted)
            parts.append(_without_padding(packed.rows))
            # Rows to be trained on are not read out.
            self._parts.append((begin, num_rows, None if targets is not None else packed.origin))
            num_rows += len(parts[-1][0])
        self._parts.append((count, num_rows, None))
        if not parts or (not num_rows and targets is not None):
            raise InputError(
                "There must be at least one example with a token that remains after clean-up. "
                f"Received: {count} examples."
            )
        sizes = np.concatenate([lengths for lengths, _, _ in parts])  # [N, sequences]
        self._sizes, self.lengths = sizes, sizes.max(axis=1)
        self._begins = np.cumsum(sizes).reshape(sizes.shape) - sizes
        self._tokens = {
            name: _narrow(np.concatenate([tokens[name] for _, tokens, _ in parts]))
            for name in parts[0][1]
        }
        self._values = {
            name: np.concatenate([values[name] for _, _, values in parts]) for name in parts[0][2]
        }
        self.weights = self._values.pop("sample_weight", weights)

    def batch(self, rows: np.ndarray, length: int | None = None) -> dict[str, np.ndarray]:
        rows = np.asarray(rows, np.int64)
        length = self.max_seq_length if length is None else length
        sizes, begins = self._sizes[rows][..., None], self._begins[rows][..., None]
        positions = np.arange(length)
        is_token = positions < sizes  # [B, sequences, length]
        places = np.where(is_token, begins + positions, 0)
        batch = {"input_mask": is_token.astype(np.int32)}
        for name, tokens in self._tokens.items():
            batch[name] = np.where(is_token, tokens[places], self._fillers.get(name, 0))
        if sizes.shape[1] == 1:
            batch = {name: values[:, 0] for name, values in batch.items()}
        batch = {
            name: values.astype(np.int32) if values.dtype.kind in "iu" else values
            for name, values in batch.items()
        }
        batch |= {name: values[rows] for name, values in self._values.items()}
        return batch if self._labels is None else batch | {"labels": self._labels[rows]}

    @property
    def dropped_tokens(self) -> np.ndarray:
        """int64 [number of examples]. Tokens that did not fit into the rows; of words none."""
        counts = [
            np.asarray(origin.get("dropped_tokens", np.zeros(end - begin)), np.int64)
            for (begin, _, origin), (end, _, _) in zip(self._parts, self._parts[1:], strict=False)
        ]
        return np.concatenate(counts)

    def answers(
        self,
        model: Any,
        outputs: Mapping[str, np.ndarray],
        ids: Sequence[str] | None = None,
    ) -> list[Any]:
        """Returns the answers of a model to the examples, see `AlbertForTexts.answers_of`.

        Args:
            model: AlbertForTexts.
            outputs: Its outputs for all rows, as of `RowPredictor.predict`.
            ids: Of the examples; None is their numbers.
        """
        check_finite(outputs)
        if not len(self):  # no question has a window
            outputs = {
                name: np.zeros([size or 0 for size in spec.shape], spec.dtype.as_numpy_dtype)
                for name, spec in model.output_specs().items()
            }
        columns = dict(self._columns)
        columns["id"] = list(ids or map(str, range(self._parts[-1][0])))
        answers: list[Any] = []
        for (begin, row, origin), (end, last, _) in zip(self._parts, self._parts[1:], strict=False):
            own = {name: tf.constant(values[row:last]) for name, values in outputs.items()}
            found = model.read_out(own, origin)
            arrays = {name: tensor.numpy() for name, tensor in found.items()}
            here = {name: values[begin:end] for name, values in columns.items()}
            answers += model.answers_of(arrays, here)
        return answers


def _without_padding(rows):
    """Returns the lengths of rows, [N, sequences], their features by token, and the others."""
    rows = {name: values.numpy() for name, values in rows.items()}
    mask = rows.pop("input_mask").astype(bool)
    lengths = mask.sum(axis=-1).reshape(len(mask), math.prod(mask.shape[1:-1]))
    has_tokens = {name for name, values in rows.items() if values.shape == mask.shape}
    tokens = {name: rows[name][mask] for name in has_tokens}
    return lengths, tokens, {name: rows[name] for name in rows.keys() - has_tokens}


def _narrow(values):
    """Returns integers in the smallest type that has them."""
    low, high = (values.min(), values.max()) if len(values) else (0, 0)
    return values.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))


def _tensor_of(values: Any) -> tf.Tensor | tf.RaggedTensor:
    """Returns targets of some examples as a tensor; ragged if they are lists of lists."""
    return tf.ragged.constant(values, tf.int32) if isinstance(values, list) else tf.constant(values)
