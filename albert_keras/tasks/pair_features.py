"""Texts and pairs of texts → `[CLS] a [SEP] b [SEP]` as arrays."""

from typing import NamedTuple

import numpy as np

from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError
from data_pipeline.instances.packing import pack

_MIN_SEQ_LENGTH = 5  # [CLS] a [SEP] b [SEP] with one token each


class EncodedPairs(NamedTuple):
    """Pairs before they are laid out: the input of `pack`, a fraction of the size of its output.

    Attributes:
        ids: int32 [T]. Tokens of all different texts.
        starts: int64 [N, 2]. First token of A and B in `ids`.
        lengths: int64 [N, 2]. Tokens of A and B after truncation; 0 for B if there is none.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class PairFeatures(Features):
    """Texts or pairs, laid out one batch at a time: padded rows of all of them would be too large.

    Args:
        pairs: EncodedPairs. N of them, or N * C.
        tokenizer: Tokenizer.
        max_seq_length: int. S.
        labels: int32 [N] numbers of classes or options, float32 [N] scores, or None.
        options: int or None. C, if a row has several sequences, which are consecutive in `pairs`.
    """

    def __init__(self, pairs, tokenizer, max_seq_length, labels=None, options=None):
        self.pairs, self.labels = pairs, labels
        self.max_seq_length = max_seq_length
        self._tokenizer, self._options = tokenizer, options
        lengths = pairs.lengths.sum(axis=1) + np.where(pairs.lengths[:, 1] > 0, 3, 2)
        self.lengths = lengths.reshape(-1, options or 1).max(axis=1)

    def batch(self, rows, length=None):
        rows = np.asarray(rows, np.int64)
        length = self.checked_length(rows, length)
        ids, starts, lengths = self.pairs
        if self._options is None:
            batch = lay_out(EncodedPairs(ids, starts[rows], lengths[rows]), self._tokenizer, length)
        else:
            pairs = (rows[:, None] * self._options + np.arange(self._options)).ravel()
            part = EncodedPairs(ids, starts[pairs], lengths[pairs])
            batch = {
                name: values.reshape(-1, self._options, length)
                for name, values in lay_out(part, self._tokenizer, length).items()
            }
        if self.labels is not None:
            batch["labels"] = self.labels[rows]
        return batch


def pair_features(examples, tokenizer, max_seq_length) -> dict[str, np.ndarray]:
    """Encodes and lays out texts and pairs; see `encode_pairs` and `lay_out`."""
    return lay_out(encode_pairs(examples, tokenizer, max_seq_length), tokenizer, max_seq_length)


def encode_pairs(examples, tokenizer, max_seq_length) -> EncodedPairs:
    """Encodes and truncates texts and pairs.

    A second text without tokens counts as absent. Texts that are too long are truncated as in
    `truncated_lengths`.

    Args:
        examples: list of TextExample. N of them.
        tokenizer: Tokenizer.
        max_seq_length: int. S, at least 5.

    Raises:
        InputError: If `max_seq_length` leaves no room for a pair.

    Source:
        `convert_single_example` in google-research/albert, `classifier_utils.py`.
    """
    if max_seq_length < _MIN_SEQ_LENGTH:
        raise InputError(
            f"`max_seq_length` must be at least {_MIN_SEQ_LENGTH}: [CLS], [SEP] and [SEP] with "
            f"a token of each text. Received: {max_seq_length}."
        )
    texts = [example.first for example in examples]
    texts += [example.second or "" for example in examples]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    lengths = lengths.reshape(2, -1).T
    room = max_seq_length - np.where(lengths[:, 1] > 0, 3, 2)
    return EncodedPairs(ids, starts.reshape(2, -1).T, truncated_lengths(lengths, room))


def lay_out(pairs, tokenizer, max_seq_length) -> dict[str, np.ndarray]:
    """Lays out EncodedPairs for the encoder.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 = real) and `segment_ids` (0 up to and
        including the first [SEP], then 1; 0 on padding).
    """
    return pack(
        pairs.ids,
        pairs.starts,
        pairs.lengths,
        max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
    )


def encode_texts(texts, tokenizer):
    """Encodes many texts, each different one once.

    Args:
        texts: list of str. N of them.
        tokenizer: Tokenizer.

    Returns:
        tuple. int32 [T], the ids of all different texts, concatenated; int64 [N], where the ids of
        each text start; int64 [N], how many they are.
    """
    numbers = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    ids, lengths = tokenizer.encode_sentences(list(numbers))
    starts = lengths.cumsum() - lengths
    rows = np.array([numbers[text] for text in texts], np.int64)
    return ids, starts[rows], lengths[rows]


def truncated_lengths(lengths, room) -> np.ndarray:
    """Returns the lengths after truncating the longer text, B on a tie, until both fit.

    The last token is removed each time, so the beginnings remain.

    Args:
        lengths: int64 [N, 2]. Tokens of A and B.
        room: int or int64 [N]. Tokens for both together.

    Returns:
        int64 [N, 2].

    Source:
        `_truncate_seq_pair` in google-research/albert, `classifier_utils.py`.
    """
    first, second = lengths.T
    second = np.minimum(second, np.maximum(room // 2, room - first))
    return np.stack([np.minimum(first, room - second), second], axis=1)
