"""Tagged sentences → rows of tokens aligned to words."""

from collections.abc import Sequence

import numpy as np

from albert_keras.models.tagging import NOT_SCORED, window_stride
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.pair_features import PairFeatures, encode_texts, single_texts
from albert_keras.tasks.spans.windows import lay_out_windows, max_context
from data_pipeline.tokenizers.tokenization import Tokenizer


class TagFeatures(PairFeatures):
    """Rows of words; a long sentence takes several.

    Args:
        words: The row and the position of the first token of each word, int64 [words] each.
        tags: int64 [words] or None. The numbers of their tags.

    Attributes:
        word_starts: bool [N, S]. The first tokens of words, in the order of sentences and of words.
    """

    def __init__(self, pairs, tokenizer, max_seq_length, words, tags=None):
        super().__init__(pairs, tokenizer, max_seq_length)
        shape = len(self), max_seq_length
        self.word_starts = np.zeros(shape, bool)
        self.word_starts[words] = True
        self.targets = tags
        self._tag_ids = None if tags is None else np.full(shape, NOT_SCORED, np.int32)
        if tags is not None:
            self._tag_ids[words] = tags

    def batch(self, rows, length=None):
        batch = super().batch(rows, length)
        if self._tag_ids is not None:
            batch["tag_ids"] = self._tag_ids[rows, : batch["input_ids"].shape[1]]
        return batch


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
    tokens, firsts, lengths = _tokens_of_words(examples, tokenizer)
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
    windows = single_texts(tokens, offsets, window_lengths)
    of_words = [best[total] + first for total, first in zip(totals, first_windows, strict=True)]
    rows = np.concatenate([np.zeros(0, np.int64), *of_words])[firsts]
    words = rows, 1 + firsts - offsets[rows]
    tags = None
    if tag_names is not None:
        tags = label_numbers((tag for example in examples for tag in example.tags), tag_names)
    return TagFeatures(windows, tokenizer, max_seq_length, words, tags)


def _tokens_of_words(examples, tokenizer):
    """Returns the tokens of all words in a row, and of each word the first one and their number."""
    words = [word for example in examples for word in example.words]
    ids, starts, lengths = encode_texts(words, tokenizer)
    starts[lengths == 0], lengths[lengths == 0] = len(ids), 1
    ids = np.append(ids, np.int32(tokenizer.unk_id))
    firsts = lengths.cumsum() - lengths
    return ids[np.repeat(starts - firsts, lengths) + np.arange(lengths.sum())], firsts, lengths
