"""Tagged sentences → rows of tokens aligned to words."""

import logging
from collections.abc import Sequence

import numpy as np

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.feature_cache import cached_features
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.pair_features import EncodedPairs, encode_texts, lay_out
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: In place of a tag where nothing is scored: [CLS], [SEP], padding, and all tokens of a word but
#: the first.
NOT_SCORED = -1

logger = logging.getLogger(__name__)


class TagFeatures(Features):
    """Rows of words with tags, int32 [N, S] each, see `tag_rows`; a long sentence takes several."""

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


def tag_features(examples, tokenizer, max_seq_length, tag_names=None, cache=None) -> TagFeatures:
    """Encodes tagged sentences as `tag_rows`, or reads them from a cache, see `cached_features`."""
    tag_names = None if tag_names is None else list(tag_names)

    def build():
        return tag_rows(examples, tokenizer, max_seq_length, tag_names)

    settings = {"max_seq_length": max_seq_length, "tag_names": tag_names}
    return TagFeatures(cached_features(cache, "tags", examples, tokenizer, settings, build))


def tag_rows(
    examples: Sequence[TaggedExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    tag_names: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """Lays out `[CLS] words [SEP]`, with the tag of a word on its first token.

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
    if max_seq_length < 3:  # [CLS], a token, [SEP]
        raise InputError(f"`max_seq_length` must be at least 3. Received: {max_seq_length}.")
    words = [word for example in examples for word in example.words]
    ids, starts, lengths = encode_texts(words, tokenizer)
    starts[lengths == 0], lengths[lengths == 0] = len(ids), 1
    ids = np.append(ids, np.int32(tokenizer.unk_id))
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
    firsts = lengths.cumsum() - lengths  # the first tokens of all words, concatenated
    tokens = ids[np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())]
    begins = firsts[np.flatnonzero(np.diff(rows, prepend=-1))]  # of rows
    row_lengths = np.diff(begins, append=len(tokens))
    none = np.zeros_like(begins)
    pairs = EncodedPairs(
        tokens, np.stack([begins, none], axis=1), np.stack([row_lengths, none], axis=1)
    )
    arrays = lay_out(pairs, tokenizer, max_seq_length)

    columns = 1 + firsts - begins[rows]
    shape = arrays["input_ids"].shape
    arrays["word_starts"] = np.zeros(shape, np.int32)
    arrays["word_starts"][rows, columns] = 1
    if tag_names is not None:
        tags = [tag for example in examples for tag in example.tags]
        arrays["tag_ids"] = np.full(shape, NOT_SCORED, np.int32)
        arrays["tag_ids"][rows, columns] = label_numbers(tags, tag_names)
    return arrays


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
