"""Pieces of a text and the characters each comes from, in the graph.

Equivalent to `data_pipeline/tokenizers/offsets.py`, but uses only core operations and the
operations of the tokenizers; ids are those of the tokenizers in the graph.
"""

import sys
import unicodedata
from typing import NamedTuple

import sentencepiece
import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE, ragged_cumsum
from data_pipeline.tokenizers.byte_bpe_graph import ByteBPEGraphTokenizer
from data_pipeline.tokenizers.cleanup import (
    character_class,
    character_ranges,
    clean_up,
    starts_cluster,
)
from data_pipeline.tokenizers.graph_tokenization import GraphTokenizer, WordPieceGraphTokenizer
from data_pipeline.tokenizers.offsets import piece_bytes
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import SPACE
from data_pipeline.tokenizers.wordpiece import is_space

#: Controls, formats, marks and separators; U+FFFD is So.
_MAY_BE_BLANK = ("Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "So", "Sk", "Lm")


class AlignedPieces(NamedTuple):
    """Pieces of B texts and the characters of the raw text that they come from."""

    ids: tf.RaggedTensor  #: int32 [B, None].
    starts: tf.RaggedTensor  #: int64 [B, None], the first character.
    ends: tf.RaggedTensor  #: int64 [B, None], one more than the last character.

    def characters(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the raw characters that spans of pieces come from.

        `first` and `last`, int64 [B, K], are the first and the last piece in each text, in range.
        The result is the first character, and one more than the last, int64 [B, K] each.
        """
        most = tf.maximum(self.ids.row_splits[-1] - 1, 0)
        start, end = (
            tf.gather(
                tf.pad(edges.flat_values, [[0, 1]]),
                tf.minimum(self.ids.row_starts()[:, None] + number, most),
            )
            for edges, number in ((self.starts, first), (self.ends, last))
        )
        return start, end


class _TextsAt:
    """What all aligning tokenizers have in common."""

    #: Matches characters that are read as space or nothing.
    _blank = WHITE_SPACE

    def texts_at(self, texts, starts, ends):
        """Returns parts of texts without leading characters that are read as space or nothing.

        Args:
            texts: string [B], UTF-8.
            starts, ends: int64 [B, K], in characters.

        Returns:
            string [B, K]; start and end of the rest, int32 [B, K] each, -1 if it is "".
        """
        lengths = tf.maximum(ends - starts, 0)
        starts = tf.where(lengths > 0, starts, 0)
        found = tf.strings.substr(texts[:, None], starts, lengths, unit="UTF8_CHAR")
        found = tf.strings.regex_replace(found, f"{WHITE_SPACE}+$", "")
        sizes = tf.strings.length(found, unit="UTF8_CHAR")
        stripped = tf.strings.regex_replace(found, f"^{self._blank}+", "")
        spaceless = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
        stripped = tf.where(stripped == "", spaceless, stripped)
        left = tf.strings.length(stripped, unit="UTF8_CHAR")
        starts = tf.cast(starts, tf.int32) + sizes - left
        has_text = left > 0
        return stripped, tf.where(has_text, starts, -1), tf.where(has_text, starts + left, -1)


class AligningTokenizer(_TextsAt, GraphTokenizer):
    """A GraphTokenizer of SentencePiece that also returns where tokens come from, as `TextAligner`.

    SentencePiece reports where each token starts, `TextAligner` knows it for each letter. So if one
    character is normalised to several letters of two tokens (`ﬃ` to `of` and `fi`), the first of
    them may lack that character here; and tokens may be narrower where full-width digits and comma
    are split. With the clean-up in the graph this only concerns what SentencePiece itself
    normalises further.
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        self._space = tokenizer.id_of(SPACE)
        self._blank = character_class(_blank_ranges(tokenizer))
        self._part_bytes = None
        if tokenizer.model.digit_comma:
            ids, parts = range(tokenizer.vocab_size), tokenizer.model.digit_comma
            rows = [parts.get(id, [id]) for id in ids]
            size = [len(tokenizer.piece_of(id).replace(SPACE, "").encode()) for id in ids]
            self._part_bytes = tf.ragged.constant([[size[id] for id in row] for row in rows])
        self._joins = None
        if self._cleans_up and not self._strip_accents:
            self._joins = character_class(
                character_ranges(lambda character: not starts_cluster(character))
            )

    def align(self, texts):
        """Returns the AlignedPieces of string [B], UTF-8."""
        cleaned = self._clean_up(texts) if self._cleans_up else texts
        ids, begins, stops = self._sentencepiece.tokenize_with_offsets(cleaned)
        # If a character becomes several tokens, all but the last have no bytes.
        is_part = (stops.flat_values == begins.flat_values) & (ids.flat_values != self._space)
        stops = tf.where(is_part, begins.flat_values + 1, stops.flat_values)
        stops = ids.with_flat_values(stops)
        if self._replacements is not None:
            ids, begins, stops = self._split(ids, begins, stops)
        units, sizes, written = self._units(texts)
        starts, ends = _sources(units, sizes, written, written > 0)
        # A byte more in each text is where it ends.
        total = tf.reduce_sum(units.with_flat_values(sizes), axis=1)[:, None]
        starts, ends = (tf.concat([edges, total], axis=1) for edges in (starts, ends))
        rows = ids.value_rowids()
        firsts = tf.gather(starts.row_starts(), rows)
        most = tf.gather(starts.row_lengths() - 1, rows)
        begins, stops = (firsts + tf.minimum(edges.flat_values, most) for edges in (begins, stops))
        return _aligned(ids, starts, ends, begins, stops)

    def _split(self, ids, starts, ends):
        """Replaces tokens that end in digit and comma by several, as `GraphTokenizer` does."""
        parts = tf.gather(self._replacements, ids.flat_values)  # [tokens, None]
        sizes = tf.cast(tf.gather(self._part_bytes, ids.flat_values), tf.int64)
        whole = sizes.value_rowids()
        is_split = tf.gather(sizes.row_lengths() > 1, whole)
        after = tf.gather(tf.reduce_sum(sizes, axis=1), whole) - ragged_cumsum(sizes).flat_values
        stops = tf.gather(ends.flat_values, whole) - tf.where(is_split, after, 0)
        begins = tf.gather(starts.flat_values, whole)
        begins = tf.where(is_split, stops - sizes.flat_values, begins)
        return [
            ids.with_flat_values(parts.with_flat_values(values)).merge_dims(1, 2)
            for values in (parts.flat_values, begins, stops)
        ]

    def _units(self, texts):
        """Splits texts into parts that are cleaned up independently, mostly one character.

        Returns:
            The parts, ragged string [B, None]; the number of characters of each, and the number of
            bytes that the clean-up leaves of it, int64, flat.
        """
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        different, numbers = tf.unique(letters.flat_values)
        is_blank = tf.gather(tf.strings.regex_full_match(different, WHITE_SPACE), numbers)
        units, sizes = letters, tf.ones_like(letters.flat_values, tf.int64)
        if self._joins is not None:
            joins = tf.gather(tf.strings.regex_full_match(different, self._joins), numbers)
            units, sizes, is_blank = _clusters(letters, joins, is_blank)
        if self._cleans_up:
            different, numbers = tf.unique(units.flat_values)
            written = tf.gather(tf.strings.length(self._clean_up(different)), numbers)
            written = tf.where(is_blank, _kept_spaces(units, is_blank), written)
        else:
            written = tf.strings.length(units.flat_values)
        return units, sizes, tf.cast(written, tf.int64)


class AligningWordPiece(_TextsAt, WordPieceGraphTokenizer):
    """A WordPieceGraphTokenizer that also returns where pieces come from, as `TextAligner`."""

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        self._is_space = character_class(character_ranges(is_space))

    def align(self, texts):
        """Returns the AlignedPieces of string [B], UTF-8."""
        words, ids, begins, stops = self.words_and_offsets(texts)
        before = tf.cumsum(tf.strings.length(words.flat_values), exclusive=True)
        begins, stops = (
            (edges + tf.cast(before, edges.dtype)[:, None]).flat_values for edges in (begins, stops)
        )
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        different, numbers = tf.unique(letters.flat_values)
        remaining = tf.strings.length(tf.strings.reduce_join(self.words(different), axis=1))
        written = tf.cast(tf.gather(remaining, numbers), tf.int64)
        # The letters before white space do not extend over it.
        is_blank = tf.gather(tf.strings.regex_full_match(different, self._is_space), numbers)
        starts, ends = _sources(letters, tf.ones_like(written), written, (written > 0) | is_blank)
        ids = words.with_flat_values(ids).merge_dims(1, 2)
        return _aligned(ids, starts, ends, begins, stops)


class AligningByteBPE(_TextsAt, ByteBPEGraphTokenizer):
    """A ByteBPEGraphTokenizer that also returns where pieces come from, as `TextAligner`."""

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        sizes, spaces = piece_bytes(tokenizer)
        self._bytes, self._spaces = tf.constant(sizes), tf.constant(spaces)

    def align(self, texts):
        """Returns the AlignedPieces of string [B], UTF-8."""
        ids = self(texts)
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        written = tf.cast(tf.strings.length(letters.flat_values), tf.int64)
        starts, ends = _sources(letters, tf.ones_like(written), written, written > 0)
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


#: A tokenizer in a graph that aligns: `align` and `texts_at`.
Aligner = AligningTokenizer | AligningWordPiece | AligningByteBPE


def aligning_tokenizer(tokenizer: Tokenizer) -> Aligner:
    """Rebuilds a tokenizer of any kind for a graph, with `align` and `texts_at`."""
    classes = {
        "unigram": AligningTokenizer,
        "wordpiece": AligningWordPiece,
        "bpe": AligningByteBPE,
    }
    return classes[tokenizer.config.kind](tokenizer)


def _sources(units, sizes, written, stays):
    """Returns the characters that the bytes that remain come from, as `tokenizers/offsets.py` does.

    Args:
        units: ragged string [B, None], parts of texts.
        sizes, written: int64, flat. Characters of each unit, and bytes that remain of it.
        stays: bool, flat. False for units that the ones before them extend over.

    Returns:
        ragged int64 [B, None] each: for every byte the first character of its unit, and the end of
        it and of the deleted units after it.
    """
    sizes, stays = units.with_flat_values(sizes), units.with_flat_values(stays)
    begins = tf.ragged.boolean_mask(ragged_cumsum(sizes) - sizes, stays)
    counts = tf.ragged.boolean_mask(units.with_flat_values(written), stays)
    total = tf.reduce_sum(sizes, axis=1)[:, None]
    following = tf.concat([begins, total], axis=1)[:, 1:]
    num_bytes = tf.reduce_sum(counts, axis=1)
    starts, ends = (
        tf.RaggedTensor.from_row_lengths(
            tf.repeat(edges.flat_values, counts.flat_values), num_bytes
        )
        for edges in (begins, following)
    )
    return starts, ends


def _aligned(ids, starts, ends, begins, stops):
    """Returns AlignedPieces from the bytes of each piece in what remains of all texts, flat."""
    most = tf.size(starts.flat_values, begins.dtype) - 1  # no text may raise
    first = tf.gather(starts.flat_values, tf.minimum(begins, most))
    last = tf.gather(ends.flat_values, tf.clip_by_value(stops - 1, 0, most))
    end = tf.where(stops > begins, last, first)
    return AlignedPieces(ids, ids.with_flat_values(first), ids.with_flat_values(end))


def _previous(flags, default, ragged):
    """Returns the flag of the previous value in each row, `default` for the first: bool, flat."""
    numbers = tf.range(tf.shape(ragged.flat_values, tf.int64)[0])
    is_first = numbers == tf.gather(ragged.row_starts(), ragged.value_rowids())
    return tf.where(is_first, default, tf.concat([[default], flags[:-1]], 0))


def _kept_spaces(units, is_blank):
    """Counts the white space after the clean-up: one for each run between words, int32, flat."""
    words = units.with_flat_values(tf.cast(~is_blank, tf.int64))
    left = tf.gather(tf.reduce_sum(words, axis=1), words.value_rowids())
    is_before_word = ragged_cumsum(words).flat_values < left
    return tf.cast(is_blank & is_before_word & ~_previous(is_blank, True, units), tf.int32)


def _clusters(letters, joins, is_blank):
    """Joins letters with those that Unicode composition may combine with them.

    Returns:
        The clusters, ragged string [B, None]; the number of letters of each, int64, flat; and
        whether each is white space, bool, flat.
    """
    opens = ~joins | is_blank | _previous(is_blank, True, letters)
    numbers = tf.cumsum(tf.cast(opens, tf.int32)) - 1
    counts = letters.with_flat_values(tf.cast(opens, tf.int64))
    total = tf.reduce_sum(tf.cast(opens, tf.int32))
    joined = tf.strings.unsorted_segment_join(letters.flat_values, numbers, total)
    clusters = tf.RaggedTensor.from_row_lengths(joined, tf.reduce_sum(counts, axis=1))
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(numbers, tf.int64), numbers, total)
    return clusters, sizes, tf.boolean_mask(is_blank, opens)


def _blank_ranges(tokenizer):
    """Lists the characters that the tokenizer reads as space or nothing."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    codes = [
        code
        for code in range(1, sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in _MAY_BE_BLANK
    ]
    texts = [f"a{chr(code)}a" for code in codes]
    if tokenizer.config.cleanup == "reference":
        settings = tokenizer.config.lower_case, tokenizer.config.strip_accents
        texts = [clean_up(text, *settings) for text in texts]
    normal = processor.normalize(texts)
    return [
        (code, code)
        for code, text in zip(codes, normal, strict=True)
        if text.removeprefix(SPACE) in ("aa", f"a{SPACE}a")
    ]
