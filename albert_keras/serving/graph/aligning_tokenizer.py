"""Tokens of a text and the characters each comes from, in the graph.

Equivalent to `data_pipeline/tokenizers/offsets.py`; ids are the same as of GraphTokenizer.
"""

import sys
import unicodedata
from typing import NamedTuple

import sentencepiece
import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE, ragged_cumsum
from data_pipeline.tokenizers.cleanup import (
    character_class,
    character_ranges,
    clean_up,
    starts_cluster,
)
from data_pipeline.tokenizers.graph_tokenization import GraphTokenizer
from data_pipeline.tokenizers.vocabulary import SPACE

#: Controls, formats, marks and separators; U+FFFD is So.
_MAY_BE_BLANK = ("Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "So", "Sk", "Lm")


class AlignedTexts(NamedTuple):
    """Tokens of B texts and where they come from.

    A unit is a part of the raw text that is cleaned up independently, mostly one character, with
    the characters after it that are removed.
    """

    ids: tf.RaggedTensor  #: int32 [B, None].
    #: int64 [B, None] each: the bytes of the cleaned text that a token comes from.
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    clean_ends: tf.Tensor  #: int64 [B, U]: end of each unit in the cleaned text, in bytes.
    #: int64 [B, U + 1]: start of each unit in the raw text, in characters; end of the last one.
    raw_edges: tf.Tensor

    def characters(self, first: tf.Tensor, last: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the raw characters that spans of tokens come from.

        `first` and `last`, int64 [B, K], are the first and the last token in each text, in range.
        The result is the first character, and one more than the last, int64 [B, K] each.
        """
        most = tf.maximum(self.ids.row_splits[-1] - 1, 0)
        starts = self.ids.row_starts()[:, None]
        tokens = (tf.minimum(starts + number, most) for number in (first, last))
        start, end = (
            tf.gather(tf.pad(offsets.flat_values, [[0, 1]]), token)
            for offsets, token in zip((self.starts, self.ends), tokens, strict=True)
        )
        end = tf.where(end > start, self._edge(end - 1, 1), self._edge(start, 0))
        return self._edge(start, 0), end

    def _edge(self, byte, which):
        """Returns where the unit of a byte of the cleaned text starts (0) or ends (1)."""
        # Texts may be empty, which a search must not be.
        ends = tf.pad(self.clean_ends, [[0, 0], [0, 1]], constant_values=tf.int64.max)
        unit = tf.searchsorted(ends, byte, side="right")
        unit = tf.minimum(unit + which, tf.shape(self.raw_edges)[1] - 1)
        return tf.gather(self.raw_edges, unit, batch_dims=1)


class AligningTokenizer(GraphTokenizer):
    """A GraphTokenizer of SentencePiece that also returns where tokens come from, as `TextAligner`.

    SentencePiece reports where each token starts, `TextAligner` knows it for each letter. So if one
    character is normalised to several letters of two tokens (`ﬃ` to `of` and `fi`), the first of
    them may lack that character here; and tokens may be narrower where full-width digits and comma
    are split. With the clean-up in the graph this only concerns what SentencePiece itself
    normalises further.
    """

    def __init__(self, tokenizer):
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
            self._joins = character_class(character_ranges(_joins_previous))

    def align(self, texts):
        """Returns the AlignedTexts of string [B], UTF-8."""
        cleaned = self._clean_up(texts) if self._cleans_up else texts
        ids, starts, ends = self._sentencepiece.tokenize_with_offsets(cleaned)
        # If a character becomes several tokens, all but the last have no bytes.
        starts, stops = starts.flat_values, ends.flat_values
        is_part = (stops == starts) & (ids.flat_values != self._space)
        stops = tf.where(is_part, starts + 1, stops)
        starts, ends = ids.with_flat_values(starts), ids.with_flat_values(stops)
        if self._replacements is not None:
            ids, starts, ends = self._split(ids, starts, ends)
        return AlignedTexts(ids, starts, ends, *self._units(texts))

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
        found = substrings(texts, starts, lengths)
        found = tf.strings.regex_replace(found, f"{WHITE_SPACE}+$", "")
        sizes = tf.strings.length(found, unit="UTF8_CHAR")
        stripped = tf.strings.regex_replace(found, f"^{self._blank}+", "")
        spaceless = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
        stripped = tf.where(stripped == "", spaceless, stripped)
        left = tf.strings.length(stripped, unit="UTF8_CHAR")
        starts = tf.cast(starts, tf.int32) + sizes - left
        has_text = left > 0
        return stripped, tf.where(has_text, starts, -1), tf.where(has_text, starts + left, -1)

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
        """Returns `clean_ends` and `raw_edges` of AlignedTexts."""
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        different, numbers = tf.unique(letters.flat_values)
        is_space = tf.gather(tf.strings.regex_full_match(different, WHITE_SPACE), numbers)
        units, sizes = letters, tf.ones_like(letters.flat_values, tf.int64)
        if self._joins is not None:
            joins = tf.gather(tf.strings.regex_full_match(different, self._joins), numbers)
            units, sizes, is_space = _clusters(letters, joins, is_space)
        if self._cleans_up:
            different, numbers = tf.unique(units.flat_values)
            written = tf.gather(tf.strings.length(self._clean_up(different)), numbers)
            written = tf.where(is_space, _kept_spaces(units, is_space), written)
        else:
            written = tf.strings.length(units.flat_values)
        written = units.with_flat_values(tf.cast(written, tf.int64))
        sizes = units.with_flat_values(sizes)
        ends = ragged_cumsum(sizes)
        remains = written > 0
        clean_ends = tf.ragged.boolean_mask(ragged_cumsum(written), remains)
        begins = tf.ragged.boolean_mask(ends - sizes, remains)
        total = tf.reduce_sum(sizes, axis=1)[:, None]
        return clean_ends.to_tensor(tf.int64.max), tf.concat([begins, total], axis=1).to_tensor()


def substrings(texts, starts, lengths):
    """Returns parts of texts, string [B], at starts and lengths in characters, int64 [B, K]."""
    return tf.strings.substr(texts[:, None], starts, lengths, unit="UTF8_CHAR")


def _previous(flags, default, ragged):
    """Returns the flag of the previous value in each row, `default` for the first: bool, flat."""
    numbers = tf.range(tf.shape(ragged.flat_values, tf.int64)[0])
    is_first = numbers == tf.gather(ragged.row_starts(), ragged.value_rowids())
    return tf.where(is_first, default, tf.concat([[default], flags[:-1]], 0))


def _kept_spaces(units, is_space):
    """Counts the white space after the clean-up: one for each run between words, int32, flat."""
    words = units.with_flat_values(tf.cast(~is_space, tf.int64))
    left = tf.gather(tf.reduce_sum(words, axis=1), words.value_rowids())
    is_before_word = ragged_cumsum(words).flat_values < left
    return tf.cast(is_space & is_before_word & ~_previous(is_space, True, units), tf.int32)


def _clusters(letters, joins, is_space):
    """Joins letters with those that Unicode composition may combine with them.

    Returns:
        The clusters, ragged string [B, None]; the number of letters of each, int64, flat; and
        whether each is white space, bool, flat.
    """
    opens = ~joins | is_space | _previous(is_space, True, letters)
    numbers = tf.cumsum(tf.cast(opens, tf.int32)) - 1
    counts = letters.with_flat_values(tf.cast(opens, tf.int64))
    total = tf.reduce_sum(tf.cast(opens, tf.int32))
    joined = tf.strings.unsorted_segment_join(letters.flat_values, numbers, total)
    clusters = tf.RaggedTensor.from_row_lengths(joined, tf.reduce_sum(counts, axis=1))
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(numbers, tf.int64), numbers, total)
    return clusters, sizes, tf.boolean_mask(is_space, opens)


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


def _joins_previous(character):
    """Returns whether Unicode composition may combine a character with the previous one."""
    return not starts_cluster(character)
