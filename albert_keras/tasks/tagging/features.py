"""Tagged sentences → rows of tokens aligned to words."""

from collections.abc import Sequence

import numpy as np

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.pair_features import EncodedPairs, encode_texts, lay_out
from albert_keras.tasks.spans.windows import lay_out_windows, max_context
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: In place of a tag where nothing is scored: [CLS], [SEP], padding, and all tokens of a word but
#: the first.
NOT_SCORED = -1


class TagFeatures(Features):
    """Rows of words with tags, int32 [N, S] each; a long sentence takes several.

    `arrays` are `input_ids`, `input_mask` and `segment_ids` as in `lay_out`, `word_starts`, 1 on
    the first token of a word, and with tags `tag_ids`, elsewhere `NOT_SCORED`.
    """

    def __init__(self, arrays: dict[str, np.ndarray]):
        self.arrays = arrays
        self.max_seq_length = arrays["input_ids"].shape[1]
        self.lengths = arrays["input_mask"].sum(axis=1, dtype=np.int64)

    @property
    def word_starts(self):
        """bool [N, S]. The first tokens of words, in the order of sentences and of words."""
        return self.arrays["word_starts"] == 1

    def batch(self, rows, length=None):
        rows = np.asarray(rows, np.int64)
        length = self.checked_length(rows, length)
        names = [name for name in self.arrays if name != "word_starts"]
        return {name: self.arrays[name][rows, :length] for name in names}


def tag_features(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    tag_names: Sequence[str] | None = None,
) -> TagFeatures:
    """Lays out `[CLS] words [SEP]`, with the tag of a word on its first token.

    Each word is encoded separately; one without tokens becomes the unknown token. A sentence that
    is too long takes windows that overlap, and no token is dropped. A word is marked once, in the
    window that contains most context around its first token.

    Args:
        max_seq_length: S, at least 3.
        tag_names: The tags, in the order of their ids. None for no tags.

    Returns:
        TagFeatures with at least as many rows as sentences, in their order.
    """
    ids, starts, lengths = _encoded_words(examples, tokenizer, max_seq_length)
    tokens, firsts = _concatenated(ids, starts, lengths)
    counts = [len(example.words) for example in examples]
    sentence_ends = np.append(0, lengths.cumsum())[np.cumsum(counts, dtype=np.int64)]
    totals = np.diff(sentence_ends, prepend=0)
    room = max_seq_length - 2
    layouts = {total: lay_out_windows(total, room, window_stride(room)) for total in set(totals)}
    best = {total: max_context(*layout) for total, layout in layouts.items()}
    num_windows = np.array([len(layouts[total][0]) for total in totals], np.int64)
    sentence_begins, first_windows = sentence_ends - totals, num_windows.cumsum() - num_windows
    offsets, window_lengths = (
        np.concatenate([np.zeros(0, np.int64), *(layouts[total][part] for total in totals)])
        for part in (0, 1)
    )
    offsets += np.repeat(sentence_begins, num_windows)
    none = np.zeros_like(offsets)
    windows = EncodedPairs(
        tokens, np.stack([offsets, none], axis=1), np.stack([window_lengths, none], axis=1)
    )
    arrays = lay_out(windows, tokenizer, max_seq_length)
    of_words = [best[total] + first for total, first in zip(totals, first_windows, strict=True)]
    rows = np.concatenate([np.zeros(0, np.int64), *of_words])[firsts]
    words = rows, 1 + firsts - offsets[rows]
    shape = arrays["input_ids"].shape
    arrays["word_starts"] = np.zeros(shape, np.int32)
    arrays["word_starts"][words] = 1
    if tag_names is not None:
        tags = [tag for example in examples for tag in example.tags]
        arrays["tag_ids"] = np.full(shape, NOT_SCORED, np.int32)
        arrays["tag_ids"][words] = label_numbers(tags, tag_names)
    return TagFeatures(arrays)


def window_stride(room: int) -> int:
    """Returns the number of tokens between the starts of two windows of up to `room` tokens."""
    return max(1, room // 2)


def _encoded_words(examples, tokenizer, max_seq_length):
    """Returns the ids of all words, where the ids of each word start and how many they are."""
    if max_seq_length < 3:  # [CLS], a token, [SEP]
        raise InputError(f"`max_seq_length` must be at least 3. Received: {max_seq_length}.")
    words = [word for example in examples for word in example.words]
    ids, starts, lengths = encode_texts(words, tokenizer)
    starts[lengths == 0], lengths[lengths == 0] = len(ids), 1
    return np.append(ids, np.int32(tokenizer.unk_id)), starts, lengths


def _concatenated(ids, starts, lengths):
    """Returns the tokens of all words in a row, and the first of each word, int64 [words]."""
    firsts = lengths.cumsum() - lengths
    return ids[np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())], firsts
