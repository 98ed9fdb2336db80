"""Pieces of WordPiece and of byte-level BPE and the characters each comes from, in the graph.

Equivalent to `data_pipeline/tokenizers/offsets.py`, but uses only core operations and the
operations of the tokenizers.
"""

from typing import NamedTuple

import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE
from albert_keras.serving.graph.aligning_tokenizer import AligningTokenizer, substrings
from data_pipeline.tokenizers.basic_words import is_space
from data_pipeline.tokenizers.byte_bpe_graph import ByteBPEGraphTokenizer
from data_pipeline.tokenizers.cleanup import character_class, character_ranges
from data_pipeline.tokenizers.graph_tokenization import WordPieceGraphTokenizer
from data_pipeline.tokenizers.offsets import piece_bytes
from data_pipeline.tokenizers.tokenization import Tokenizer


class AlignedPieces(NamedTuple):
    """Pieces of B texts and the characters of the raw text that they come from."""

    ids: tf.RaggedTensor  #: int32 [B, None].
    starts: tf.RaggedTensor  #: int64 [B, None], the first character.
    ends: tf.RaggedTensor  #: int64 [B, None], one more than the last character.

    def characters(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the raw characters that spans of pieces come from, as `AlignedTexts`."""
        most = tf.maximum(self.ids.row_splits[-1] - 1, 0)
        start, end = (
            tf.gather(
                tf.pad(edges.flat_values, [[0, 1]]),
                tf.minimum(self.ids.row_starts()[:, None] + number, most),
            )
            for edges, number in ((self.starts, first), (self.ends, last))
        )
        return start, end


class _StripsSpaces:
    """`texts_at` of tokenizers whose pieces have exact sources, but for white space."""

    def texts_at(self, texts, starts, ends):
        """Returns parts of texts without white space around them, as `AligningTokenizer`."""
        lengths = tf.maximum(ends - starts, 0)
        starts = tf.where(lengths > 0, starts, 0)
        found = substrings(texts, starts, lengths)
        found = tf.strings.regex_replace(found, f"{WHITE_SPACE}+$", "")
        sizes = tf.strings.length(found, unit="UTF8_CHAR")
        stripped = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
        left = tf.strings.length(stripped, unit="UTF8_CHAR")
        starts = tf.cast(starts, tf.int32) + sizes - left
        has_text = left > 0
        return stripped, tf.where(has_text, starts, -1), tf.where(has_text, starts + left, -1)


class AligningWordPiece(_StripsSpaces, WordPieceGraphTokenizer):
    """A WordPieceGraphTokenizer that also returns where pieces come from, as `TextAligner`."""

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        self._is_space = character_class(character_ranges(is_space))

    def align(self, texts):
        """Returns the AlignedPieces of string [B], UTF-8."""
        words, ids, begins, stops = self.words_and_offsets(texts)
        sizes = tf.strings.length(words.flat_values)
        before = tf.cast(tf.cumsum(sizes, exclusive=True), begins.dtype)[:, None]
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        different, numbers = tf.unique(letters.flat_values)
        remaining = tf.strings.length(tf.strings.reduce_join(self.words(different), axis=1))
        blank = tf.strings.regex_full_match(different, self._is_space)
        starts, ends = _sources(letters, tf.gather(remaining, numbers), tf.gather(blank, numbers))
        ids = words.with_flat_values(ids).merge_dims(1, 2)
        begins, stops = ((edges + before).flat_values for edges in (begins, stops))
        return _aligned(ids, starts, ends, begins, stops)


class AligningByteBPE(_StripsSpaces, ByteBPEGraphTokenizer):
    """A ByteBPEGraphTokenizer that also returns where pieces come from, as `TextAligner`."""

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        sizes, spaces = piece_bytes(tokenizer)
        self._bytes, self._spaces = tf.constant(sizes), tf.constant(spaces)

    def align(self, texts):
        """Returns the AlignedPieces of string [B], UTF-8."""
        ids = self(texts)
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        written = tf.strings.length(letters.flat_values)
        starts, ends = _sources(letters, written, tf.zeros_like(written, tf.bool))
        sizes = tf.gather(self._bytes, ids.flat_values)
        # Rows with one byte more than the text start with the space that was added.
        total = tf.reduce_sum(ids.with_flat_values(sizes), axis=1)
        added = tf.minimum(total - starts.row_lengths(), 1)
        nothing = tf.RaggedTensor.from_row_lengths(
            tf.zeros([tf.reduce_sum(added)], tf.int64), added
        )
        starts, ends = (tf.concat([nothing, edges], axis=1) for edges in (starts, ends))
        stops = tf.cumsum(sizes)
        begins = stops - sizes + tf.gather(self._spaces, ids.flat_values)
        return _aligned(ids, starts, ends, begins, stops)


def aligning_tokenizer(
    tokenizer: Tokenizer,
) -> AligningTokenizer | AligningWordPiece | AligningByteBPE:
    """Rebuilds a tokenizer of any kind for a graph, with `align` and `texts_at`."""
    classes = {
        "unigram": AligningTokenizer,
        "wordpiece": AligningWordPiece,
        "bpe": AligningByteBPE,
    }
    return classes[tokenizer.config.kind](tokenizer)


def _sources(letters, written, is_blank):
    """Returns the characters that the bytes that remain come from, as `tokenizers/offsets.py` does.

    Args:
        letters: ragged string [B, None].
        written: int32, flat. Bytes that remain of each letter.
        is_blank: bool, flat. Letters that the ones before them do not extend over.

    Returns:
        ragged int64 [B, None] each: for every byte the letter, and the end of it and of the
        deleted letters after it.
    """
    numbers = tf.range(tf.size(written, tf.int64)) - tf.gather(
        letters.row_starts(), letters.value_rowids()
    )
    stays = letters.with_flat_values((written > 0) | is_blank)
    stops = tf.ragged.boolean_mask(letters.with_flat_values(numbers), stays)
    counts = tf.ragged.boolean_mask(letters.with_flat_values(written), stays)
    following = tf.concat([stops, letters.row_lengths()[:, None]], axis=1)[:, 1:]
    sizes = tf.reduce_sum(tf.cast(counts, tf.int64), axis=1)
    return tuple(
        tf.RaggedTensor.from_row_lengths(tf.repeat(edges.flat_values, counts.flat_values), sizes)
        for edges in (stops, following)
    )


def _aligned(ids, starts, ends, begins, stops):
    """Returns AlignedPieces from the bytes of each piece in what remains of all texts, flat."""
    most = tf.size(starts.flat_values, begins.dtype) - 1  # no text may raise
    return AlignedPieces(
        ids,
        ids.with_flat_values(tf.gather(starts.flat_values, tf.minimum(begins, most))),
        ids.with_flat_values(tf.gather(ends.flat_values, tf.minimum(stops - 1, most))),
    )
