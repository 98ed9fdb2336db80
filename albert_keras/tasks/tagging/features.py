"""Tagged sentences → rows of tokens aligned to words."""

import logging
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

logger = logging.getLogger(__name__)


class TagFeatures(Features):
    """Rows of words with tags, int32 [N, S] each; a long sentence takes several.

    `arrays` are as returned by `tag_rows` or `tag_windows`.
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
    examples, tokenizer, max_seq_length, tag_names=None, training=False
) -> TagFeatures:
    """Encodes tagged sentences, as `tag_rows` in training and as `tag_windows` otherwise."""
    encode = tag_rows if training else tag_windows
    return TagFeatures(encode(examples, tokenizer, max_seq_length, tag_names))


def tag_rows(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    tag_names: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Lays out `[CLS] words [SEP]`, with the tag of a word on its first token, for training.

    Each word is encoded separately; one without tokens becomes the unknown token. A sentence that
    is too long takes several rows, split between words. A word that is longer than a whole row is
    truncated, and a warning is logged.

    Args:
        max_seq_length: S, at least 3.
        tag_names: The tags, in the order of their ids. None for no tags.

    Returns:
        dict of int32 [R, S], with at least as many rows R as sentences, in their order:
        `input_ids`, `input_mask` and `segment_ids` as in `lay_out`, `word_starts` (1 on the first
        token of a word) and, with `tag_names`, `tag_ids` (elsewhere `NOT_SCORED`).
    """
    words, ids, starts, lengths = _encoded_words(examples, tokenizer, max_seq_length)
    room = max_seq_length - 2
    too_long = np.flatnonzero(lengths > room)
    if len(too_long):
        logger.warning(
            "%d words have more than %d tokens and are truncated, such as %.40r.",
            len(too_long),
            room,
            words[too_long[0]],
        )
    lengths = np.minimum(lengths, room)
    rows = _rows_of_words([len(example.words) for example in examples], lengths.tolist(), room)
    tokens, firsts = _concatenated(ids, starts, lengths)
    begins = firsts[np.flatnonzero(np.diff(rows, prepend=-1))]  # of rows
    row_lengths = np.diff(begins, append=len(tokens))
    arrays = _laid_out(tokens, begins, row_lengths, tokenizer, max_seq_length)
    return arrays | _word_arrays(arrays, examples, rows, 1 + firsts - begins[rows], tag_names)


def tag_windows(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    tag_names: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Lays out `[CLS] words [SEP]` in windows, to predict the tag of every word.

    As `tag_rows`, except that a sentence that is too long takes windows that overlap, and no token
    is dropped. A word is marked once, in the window that contains most context around its first
    token.
    """
    _, ids, starts, lengths = _encoded_words(examples, tokenizer, max_seq_length)
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
    arrays = _laid_out(tokens, offsets, window_lengths, tokenizer, max_seq_length)
    windows = [best[total] + first for total, first in zip(totals, first_windows, strict=True)]
    rows = np.concatenate([np.zeros(0, np.int64), *windows])[firsts]
    return arrays | _word_arrays(arrays, examples, rows, 1 + firsts - offsets[rows], tag_names)


def window_stride(room: int) -> int:
    """Returns the number of tokens between the starts of two windows of up to `room` tokens."""
    return max(1, room // 2)


def _encoded_words(examples, tokenizer, max_seq_length):
    """Returns all words, their ids, where the ids of each word start and how many they are."""
    if max_seq_length < 3:  # [CLS], a token, [SEP]
        raise InputError(f"`max_seq_length` must be at least 3. Received: {max_seq_length}.")
    words = [word for example in examples for word in example.words]
    ids, starts, lengths = encode_texts(words, tokenizer)
    starts[lengths == 0], lengths[lengths == 0] = len(ids), 1
    ids = np.append(ids, np.int32(tokenizer.unk_id))
    return words, ids, starts, lengths


def _concatenated(ids, starts, lengths):
    """Returns the tokens of all words in a row, and the first of each word, int64 [words]."""
    firsts = lengths.cumsum() - lengths
    return ids[np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())], firsts


def _laid_out(tokens, begins, lengths, tokenizer, max_seq_length):
    """Lays out slices of tokens, each as `[CLS] tokens [SEP]`."""
    none = np.zeros_like(begins)
    pairs = EncodedPairs(
        tokens, np.stack([begins, none], axis=1), np.stack([lengths, none], axis=1)
    )
    return lay_out(pairs, tokenizer, max_seq_length)


def _word_arrays(arrays, examples, rows, columns, tag_names):
    """Returns the arrays that mark words, which start at rows and columns, see `tag_rows`."""
    shape = arrays["input_ids"].shape
    words = {"word_starts": np.zeros(shape, np.int32)}
    words["word_starts"][rows, columns] = 1
    if tag_names is not None:
        tags = [tag for example in examples for tag in example.tags]
        words["tag_ids"] = np.full(shape, NOT_SCORED, np.int32)
        words["tag_ids"][rows, columns] = label_numbers(tags, tag_names)
    return words


def _rows_of_words(sentence_lengths, lengths, room):
    """Fills rows with words from the left; returns the row of each word."""
    rows, row, word = [], -1, 0
    for count in sentence_lengths:
        used = room + 1  # a sentence starts a row
        for length in lengths[word : word + count]:
            if used + length > room:
                row, used = row + 1, 0
            used += length
            rows.append(row)
        word += count
    return np.array(rows, np.int64)
