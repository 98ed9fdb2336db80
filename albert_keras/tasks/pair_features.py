"""Texts and pairs of texts → `[CLS] a [SEP] b [SEP]` as arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.features import Features
from data_pipeline.instances.segments import pack
from data_pipeline.tokenizers.tokenization import Tokenizer


class EncodedPairs(NamedTuple):
    """Pairs before they are laid out: the input of `pack`, a fraction of the size of its output."""

    ids: np.ndarray  # int32 [T], tokens of all different texts
    starts: np.ndarray  # int64 [N, 2], first token of A and B in `ids`
    lengths: np.ndarray  # int64 [N, 2], tokens of A and B after truncation; 0 for B if none
    #: int64 [N], tokens of A and B that truncation dropped; None if nothing was truncated.
    dropped: np.ndarray | None = None


class PairFeatures(Features):
    """Texts or pairs, laid out one batch at a time: padded rows of all of them would be too large.

    Args:
        pairs: N of them, or N * C.
        max_seq_length: S.
        labels: int32 [N] numbers of classes or options, float32 [N] scores, or None.
        options: C, if a row has several sequences, which are consecutive in `pairs`.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        tokenizer: Tokenizer,
        max_seq_length: int,
        labels: np.ndarray | None = None,
        options: int | None = None,
    ):
        self.pairs, self.labels, self.targets = pairs, labels, labels
        self.max_seq_length = max_seq_length
        self._tokenizer, self._options = tokenizer, options
        lengths = pairs.lengths.sum(axis=1) + np.where(
            pairs.lengths[:, 1] > 0, tokenizer.num_special, 2
        )
        self.lengths = lengths.reshape(-1, options or 1).max(axis=1)
        dropped = np.zeros(len(lengths), np.int64) if pairs.dropped is None else pairs.dropped
        #: int64 [N], tokens that were dropped; of several sequences the most.
        self.dropped_tokens = dropped.reshape(-1, options or 1).max(axis=1)

    def batch(self, rows, length=None):
        rows = np.asarray(rows, np.int64)
        length = self.max_seq_length if length is None else length
        ids, starts, lengths, _ = self.pairs
        options = self._options or 1
        pairs = (rows[:, None] * options + np.arange(options)).ravel()
        part = EncodedPairs(ids, starts[pairs], lengths[pairs])
        batch = lay_out(part, self._tokenizer, length)
        if self._options is not None:
            shape = (-1, options, length)
            batch = {name: values.reshape(shape) for name, values in batch.items()}
        if self.labels is not None:
            batch["labels"] = self.labels[rows]
        return batch


def single_texts(ids: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> EncodedPairs:
    """Returns texts alone, each given by its first token in `ids` and their number, int64 [N]."""
    none = np.zeros_like(lengths)
    return EncodedPairs(ids, np.stack([starts, none], 1), np.stack([lengths, none], 1))


def pair_features(examples, tokenizer, max_seq_length) -> dict[str, np.ndarray]:
    """Encodes and lays out texts and pairs; see `encode_pairs` and `lay_out`."""
    return lay_out(encode_pairs(examples, tokenizer, max_seq_length), tokenizer, max_seq_length)


def encode_pairs(
    examples: Sequence[TextExample], tokenizer: Tokenizer, max_seq_length: int
) -> EncodedPairs:
    """Encodes and truncates texts and pairs to at most `max_seq_length` tokens.

    A second text without tokens counts as absent. Texts that are too long are truncated as in
    `truncated_lengths`.

    Source:
        `convert_single_example` in google-research/albert, `classifier_utils.py`.
    """
    texts = [example.first for example in examples]
    texts += [example.second or "" for example in examples]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    lengths = lengths.reshape(2, -1).T
    room = max_seq_length - np.where(lengths[:, 1] > 0, tokenizer.num_special, 2)
    left = truncated_lengths(lengths, room)
    return EncodedPairs(ids, starts.reshape(2, -1).T, left, (lengths - left).sum(axis=1))


def lay_out(
    pairs: EncodedPairs, tokenizer: Tokenizer, max_seq_length: int
) -> dict[str, np.ndarray]:
    """Lays out EncodedPairs for the encoder.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 = real) and `segment_ids` (0 up to and
        including the [SEP] before the second text, then 1; 0 on padding).
    """
    return pack(
        pairs.ids,
        pairs.starts,
        pairs.lengths,
        max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
        pair_separators=tokenizer.pair_separators,
    )


def encode_texts(
    texts: Sequence[str], tokenizer: Tokenizer
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encodes N texts, each different one once.

    Returns:
        int32 [T], the ids of all different texts, concatenated; int64 [N], where the ids of
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
    """Returns the lengths, int64 [N, 2], after truncating the longer text, B on a tie, to `room`.

    The last token is removed each time, so the beginnings remain. `room`, int or int64 [N], is for
    both texts together.

    Source:
        `_truncate_seq_pair` in google-research/albert, `classifier_utils.py`.
    """
    first, second = lengths.T
    second = np.minimum(second, np.maximum(room // 2, room - first))
    return np.stack([np.minimum(first, room - second), second], axis=1)
