"""Sentences → one masked sequence for each token, laid out one batch at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.pair_features import EncodedPairs, lay_out
from albert_keras.tasks.task import Features
from data_pipeline.tokenizers.tokenization import Tokenizer

#: [CLS] and [SEP].
NUM_SPECIAL = 2


class EncodedSentences(NamedTuple):
    """N sentences; M are left when sentences with the same tokens are counted once."""

    ids: np.ndarray  # int32 [T], tokens of the M different sentences
    lengths: np.ndarray  # int64 [M], at least 1
    rows: np.ndarray  # int64 [N], which of the M each sentence is


def encode_sentences(texts: Sequence[str], tokenizer: Tokenizer) -> EncodedSentences:
    """Encodes sentences, so that those with the same tokens are scored once.

    Their scores are then equal exactly, whatever batches they would be in.
    """
    numbers: dict[bytes, int] = {}
    different, rows = [], []
    for ids in tokenizer.encode_batch(texts):
        key = ids.tobytes()
        if key not in numbers:
            numbers[key] = len(different)
            different.append(ids)
        rows.append(numbers[key])
    lengths = np.array([len(ids) for ids in different], np.int64)
    return EncodedSentences(
        np.concatenate([np.zeros(0, np.int32), *different]), lengths, np.array(rows, np.int64)
    )


class MaskedSentences(Features):
    """The sequence `[CLS] s [SEP]` for each of T tokens, in which the token is masked.

    Args:
        sentences: EncodedSentences.
        tokenizer: Tokenizer.
        mask_rest_of_word: Whether the later tokens of the same word are masked, too.
    """

    def __init__(
        self, sentences: EncodedSentences, tokenizer: Tokenizer, mask_rest_of_word: bool = False
    ):
        self._ids, lengths = sentences.ids, sentences.lengths
        starts = lengths.cumsum() - lengths
        self._starts = np.repeat(starts, lengths)  # int64 [T], first token of the sentence
        self._counts = np.repeat(lengths, lengths)  # int64 [T], tokens of the sentence
        self._tokenizer = tokenizer
        tokens = np.arange(len(self._ids))
        self._ends = tokens + 1  # int64 [T], after the last masked token
        if mask_rest_of_word:
            begins_word = tokenizer.word_starts()[self._ids]
            begins_word[starts] = True
            borders = np.append(np.flatnonzero(begins_word), len(tokens))
            self._ends = borders[np.searchsorted(borders, tokens, side="right")]
        self.lengths = self._counts + NUM_SPECIAL
        self.max_seq_length = int(self.lengths.max(initial=0))
        self.dropped_tokens = np.zeros(len(tokens), np.int64)

    def batch(self, rows, length=None):
        """Lays out the sequences of some tokens; see `Features.batch`.

        Returns:
            dict of int32 [B, length] `input_ids`, `input_mask` and `segment_ids` (0), and of
            `masked_lm_positions` [B, 1] and `targets` [B], the position and the id of the token.
        """
        rows = np.asarray(rows, np.int64)
        length = self.checked_length(rows, length)
        starts, counts = self._starts[rows], self._counts[rows]
        alone = np.zeros_like(counts)  # there is no second segment
        pairs = EncodedPairs(self._ids, np.stack([starts, starts], 1), np.stack([counts, alone], 1))
        batch = lay_out(pairs, self._tokenizer, length)
        first, end = rows - starts + 1, self._ends[rows] - starts + 1  # after [CLS]
        positions = np.arange(length)
        is_masked = (positions >= first[:, None]) & (positions < end[:, None])
        batch["input_ids"][is_masked] = self._tokenizer.mask_id
        batch["masked_lm_positions"] = first[:, None].astype(np.int32)
        batch["targets"] = self._ids[rows]
        return batch
