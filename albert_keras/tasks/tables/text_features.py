"""Rows for a model of texts, pairs of texts and tagged sentences."""

import numpy as np

from albert_keras.tasks.feature_cache import cached_features
from albert_keras.tasks.pair_features import EncodedPairs, encode_pairs, lay_out
from albert_keras.tasks.tagging.files import tag_features
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError


class TextFeatures(Features):
    """Texts or pairs, laid out a batch at a time: padded rows of all would be too many.

    Args:
        pairs: EncodedPairs. N of them, truncated to `max_seq_length`.
        tokenizer: Tokenizer.
        max_seq_length: int. S.
        labels: int32 [N] numbers of classes, float32 [N] scores, or None.
    """

    def __init__(self, pairs, tokenizer, max_seq_length, labels=None):
        self.pairs = pairs
        self.labels = labels
        self.max_seq_length = max_seq_length
        self.lengths = pairs.lengths.sum(axis=1) + np.where(pairs.lengths[:, 1] > 0, 3, 2)
        self._tokenizer = tokenizer

    def batch(self, rows, length=None):
        rows = np.asarray(rows, np.int64)
        length = _checked_length(self, rows, length)
        ids, starts, lengths = self.pairs
        part = EncodedPairs(ids, starts[rows], lengths[rows])
        batch = lay_out(part, self._tokenizer, length)
        if self.labels is not None:
            batch["labels"] = self.labels[rows]
        return batch


class TagFeatures(Features):
    """Rows of words with tags, already laid out; a long sentence takes several.

    Args:
        arrays: dict of int32 [N, S]. As `tag_features` returns it.
    """

    def __init__(self, arrays):
        self.arrays = arrays
        self.max_seq_length = arrays["input_ids"].shape[1]
        self.lengths = arrays["input_mask"].sum(axis=1, dtype=np.int64)

    @property
    def word_starts(self):
        """bool [N, S]. The first pieces of words, in order of sentences and of words."""
        return self.arrays["word_starts"] == 1

    def batch(self, rows, length=None):
        rows = np.asarray(rows, np.int64)
        length = _checked_length(self, rows, length)
        names = [name for name in self.arrays if name != "word_starts"]
        return {name: self.arrays[name][rows, :length] for name in names}


def text_features(examples, tokenizer, max_seq_length, labels=None, cache=None) -> TextFeatures:
    """Encodes texts or pairs, or takes what was kept of these very ones.

    Args:
        examples: list of TextExample. N of them.
        tokenizer: Tokenizer.
        max_seq_length: int. S, at least 5.
        labels: int32 [N], float32 [N] or None. As of `TextFeatures`.
        cache: Path or None. Folder where pieces are kept, see `cached_features`.

    Raises:
        InputError: If `max_seq_length` leaves no room for a pair.
    """

    def build():
        return encode_pairs(examples, tokenizer, max_seq_length)._asdict()

    settings = {"max_seq_length": max_seq_length}
    arrays = _kept(cache, "text", examples, tokenizer, settings, build)
    return TextFeatures(EncodedPairs(**arrays), tokenizer, max_seq_length, labels)


def tagged_features(examples, tokenizer, max_seq_length, tag_names=None, cache=None) -> TagFeatures:
    """Lays tagged sentences out; arguments and errors as of `tag_features` and `text_features`."""
    tag_names = None if tag_names is None else list(tag_names)

    def build():
        return tag_features(examples, tokenizer, max_seq_length, tag_names)

    settings = {"max_seq_length": max_seq_length, "tag_names": tag_names}
    return TagFeatures(_kept(cache, "tags", examples, tokenizer, settings, build))


def _kept(cache, kind, examples, tokenizer, settings, build):
    if cache is None:
        return build()
    return cached_features(cache, kind, examples, tokenizer, settings, build)


def _checked_length(features, rows, length):
    """Returns how many places rows have, S if `length` is None."""
    whole = features.max_seq_length
    length = whole if length is None else length
    longest = int(features.lengths[rows].max(initial=0))
    if not longest <= length <= whole:
        raise InputError(
            f"Rows should have from {longest} places, the longest of them, to {whole}, "
            f"`max_seq_length`. Received: {length}."
        )
    return length
