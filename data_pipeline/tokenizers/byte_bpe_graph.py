"""Byte-level BPE in a TensorFlow graph, with core operations only.

KerasNLP's `BytePairTokenizer` is not used: it splits words by RE2's tables of characters, which are
older than the tables of the library tokenizers, and it keeps a table of words that grows with each
request.
"""

import functools
import sys

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.byte_bpe import BYTE_CHARACTERS, load_tokenizers
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Classes of characters.
_OTHER, _LETTER, _NUMBER, _WHITE = range(4)
_PATTERNS = {_LETTER: r"\p{L}+", _NUMBER: r"\p{N}+", _WHITE: r"\s+"}
_CONTRACTIONS = ("s", "t", "m", "d", "re", "ve", "ll")
_SPACE, _QUOTE = ord(" "), ord("'")
_NO_RANK = np.iinfo(np.int32).max


class ByteBPEGraphTokenizer(tf.Module):
    """Computes the ids of `Tokenizer.encode` for byte-level BPE inside a graph, exactly.

    It is called and saved as `GraphTokenizer` is, and has the same `pieces`. The time of a word
    grows with the square of its length: a word of 1,000 random letters takes hundreds of rounds.

    Source: openai/gpt-2, `encoder.py`.
    """

    def __init__(self, tokenizer: Tokenizer, name="tokenizer"):
        super().__init__(name=name)
        model = tokenizer.model
        self._adds_space = tokenizer.config.add_prefix_space
        self.pieces = tf.constant(model.vocabulary)
        ids = {piece: id for id, piece in enumerate(model.vocabulary)}
        self._byte_ids = tf.constant([ids[character] for character in BYTE_CHARACTERS], tf.int32)
        self._size = len(model.vocabulary)
        keys = np.array([ids[a] * self._size + ids[b] for a, b in model.merges], np.int64)
        order = np.argsort(keys)
        # One more key, greater than all others, so that no search ends behind the last one.
        self._keys = tf.constant([*keys[order], np.iinfo(np.int64).max], tf.int64)
        self._ranks = tf.constant([*order, _NO_RANK], tf.int32)
        products = np.array([ids[a + b] for a, b in model.merges], np.int32)
        self._products = tf.constant([*products[order], 0], tf.int32)
        firsts, classes = _character_classes()
        self._firsts, self._classes = tf.constant(firsts), tf.constant(classes)

    def __call__(self, texts):
        texts = to_utf8(texts)
        if self._adds_space:
            is_bare = ~tf.strings.regex_full_match(texts, r"(?s)( .*)?")
            texts = tf.strings.join([tf.where(is_bare, " ", ""), texts])
        return self.continuation(texts)

    def continuation(self, texts):
        """Returns the ids of `Tokenizer.continuation_ids`: no space is added before a text."""
        texts = to_utf8(texts)
        codes = tf.strings.unicode_decode(texts, "UTF-8")  # ragged int32 [B, None]
        characters, rows = codes.flat_values, codes.value_rowids()
        words = tf.cumsum(tf.cast(self._starts(characters, rows), tf.int32)) - 1  # [N]
        sizes = 1 + tf.reduce_sum(
            [tf.cast(characters >= least, tf.int32) for least in (0x80, 0x800, 0x10000)], axis=0
        )
        content = tf.io.decode_raw(tf.strings.bytes_split(texts).flat_values, tf.uint8)
        ids = tf.gather(self._byte_ids, tf.cast(tf.reshape(content, [-1]), tf.int32))
        words, rows = tf.repeat(words, sizes), tf.repeat(rows, sizes)
        ids, words, rows = self._merge(ids, words, rows)
        return tf.RaggedTensor.from_value_rowids(ids, rows, codes.nrows(), validate=False)

    def before_mask(self, texts):
        """Returns texts without the spaces at their ends, which belong to the piece after them."""
        return tf.strings.regex_replace(texts, " +$", "")

    def without_marks(self, pieces):
        """Returns pieces as written in a text: string tensor of any shape, without a space."""
        codes = tf.strings.unicode_decode(tf.reshape(pieces, [-1]), "UTF-8")
        table = np.zeros(512, np.int32)
        table[[ord(character) for character in BYTE_CHARACTERS]] = range(256)
        each = tf.constant([bytes([byte]) for byte in range(256)])
        numbers = tf.gather(table, tf.minimum(codes.flat_values, 511))
        texts = tf.strings.reduce_join(codes.with_flat_values(tf.gather(each, numbers)), axis=1)
        return tf.reshape(tf.strings.regex_replace(to_utf8(texts), "^ ", ""), tf.shape(pieces))

    def _starts(self, characters, rows):
        """Returns which characters start a word, bool [N].

        These are the words of the expression in `encoder.py`: a contraction such as `'s`; letters,
        numbers, or others, each with a space before them; and white space, without its last
        character if a word follows.
        """
        classes = tf.gather(
            self._classes, tf.searchsorted(self._firsts, characters, side="right") - 1
        )
        is_first = rows != _shifted(rows, 1, -1)
        is_last = rows != _shifted(rows, -1, -1)
        before = tf.where(is_first, -1, _shifted(classes, 1, -1))
        after = tf.where(is_last, -1, _shifted(classes, -1, -1))
        has_space = (before == _WHITE) & (_shifted(characters, 1, 0) == _SPACE)
        is_white = classes == _WHITE
        starts = is_first | ((classes != before) & ~(has_space & ~is_white))
        starts |= is_white & (before == _WHITE) & (after >= 0) & (after != _WHITE)
        # An apostrophe that starts a word, and the letters after it in the same text.
        is_quote = (characters == _QUOTE) & (before != _OTHER) & ~has_space
        for letters in _CONTRACTIONS:
            is_found = is_quote
            for offset, letter in enumerate(letters, 1):
                is_found &= _shifted(characters, -offset, 0) == ord(letter)
                is_found &= _shifted(rows, -offset, -1) == rows
            size = len(letters)
            # The letters belong to the apostrophe; what follows them is another word.
            starts &= ~_shifted(is_found, 1, False)
            starts |= _shifted(is_found, size + 1, False)
        return starts

    def _merge(self, ids, words, rows):
        """Merges pairs until no pair of a word has a merge: int32, int32 and int64 [M]."""
        num_words = tf.reduce_max(tf.concat([words, [-1]], 0)) + 1

        def goes_on(ids, words, rows, is_done):
            return ~is_done

        def merge_once(ids, words, rows, is_done):
            # Where the pair of each position and the next one is in the table, [M - 1].
            pairs = tf.cast(ids[:-1], tf.int64) * self._size + tf.cast(ids[1:], tf.int64)
            found = tf.searchsorted(self._keys, pairs)
            is_merge = (tf.gather(self._keys, found) == pairs) & (words[:-1] == words[1:])
            ranks = tf.where(is_merge, tf.gather(self._ranks, found), _NO_RANK)
            best = tf.math.unsorted_segment_min(ranks, words[:-1], num_words)
            chosen = (ranks < _NO_RANK) & (ranks == tf.gather(best, words[:-1]))
            # In `aaa` the same pair overlaps: the first, third, ... pair of a run is merged.
            is_start = chosen & ~_shifted(chosen, 1, False)
            positions = tf.range(tf.size(chosen))
            firsts = tf.concat([[0], tf.boolean_mask(positions, is_start)], 0)
            first = tf.gather(firsts, tf.cumsum(tf.cast(is_start, tf.int32)))
            chosen &= (positions - first) % 2 == 0
            merged = tf.where(chosen, tf.gather(self._products, found), ids[:-1])
            stays = tf.concat([[True], ~chosen], 0)[: tf.size(ids)]
            merged = tf.concat([merged, ids[-1:]], 0)
            tensors = [tf.boolean_mask(tensor, stays) for tensor in (merged, words, rows)]
            return (*tensors, ~tf.reduce_any(chosen))

        shapes = (*[tf.TensorShape([None])] * 3, tf.TensorShape([]))
        *merged, _ = tf.while_loop(
            goes_on, merge_once, (ids, words, rows, tf.constant(False)), shape_invariants=shapes
        )
        return merged


def _shifted(tensor, by, fill):
    """Shifts a vector to the right, or to the left if `by` is negative; gaps are filled."""
    gap = tf.fill([tf.minimum(abs(by), tf.size(tensor))], tf.cast(fill, tensor.dtype))
    if by > 0:
        return tf.concat([gap, tensor[: tf.maximum(tf.size(tensor) - by, 0)]], 0)
    return tf.concat([tensor[-by:], gap], 0)


def to_utf8(texts):
    """Replaces what is not UTF-8 by U+FFFD, as `decode(errors="replace")` does."""
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=0xFFFD
    )


@functools.cache
def _character_classes():
    """Returns first code points and classes of runs of characters, as in the library tokenizers.

    The library's tables are newer than the tables of TensorFlow and of Python. Surrogates,
    characters for private use and planes without any characters belong to no class.
    """
    library = load_tokenizers()
    codes = np.r_[0:0xD800, 0xF900:0x40000, 0xE0000:0xE1000]
    classes = np.full(len(codes), _OTHER, np.int32)
    block = 1 << 12
    splitters = {
        kind: library.pre_tokenizers.Split(library.Regex(pattern), "removed", invert=True)
        for kind, pattern in _PATTERNS.items()
    }
    for begin in range(0, len(codes), block):
        text = "".join(map(chr, codes[begin : begin + block]))
        for kind, splitter in splitters.items():
            for _, (first, end) in splitter.pre_tokenize_str(text):
                classes[begin + first : begin + end] = kind
    of_all = np.full(sys.maxunicode + 1, _OTHER, np.int32)
    of_all[codes] = classes
    changes = np.flatnonzero(np.diff(of_all, prepend=-1))
    return changes.astype(np.int32), of_all[changes]
