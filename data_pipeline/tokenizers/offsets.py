"""Character offsets: the part of the raw text, before any clean-up, that each piece comes from.

Answers to questions are copied from the raw text, so the offsets must be exact. They are computed
in a graph, of core operations and the operations of the tokenizers, so that training and an
exported model read a text alike by construction.

The clean-up, whichever it is, does not reorder text, and what it makes of a part of a text, mostly
a character, does not depend on the others. So the number of bytes that remain of each part says
where each of them comes from.
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.tokenizers.byte_bpe import bytes_of
from data_pipeline.tokenizers.byte_bpe_graph import ByteBPEGraphTokenizer
from data_pipeline.tokenizers.cleanup import class_of, continues_cluster
from data_pipeline.tokenizers.graph_tokenization import (
    GraphTokenizer,
    WordPieceGraphTokenizer,
    sentencepiece_operations,
)
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import SPACE, models_of_steps
from data_pipeline.tokenizers.wordpiece import is_space

_SPACE_BYTES = len(SPACE.encode())


class AlignedTexts(NamedTuple):
    """The pieces of B texts and the characters they come from.

    The white space before a word does not belong to its first piece. Deleted characters belong to
    the piece before them. If one character becomes several pieces (`½` becomes three), all of them
    come from it. A `▁` without a character in the text has equal `starts` and `ends`.
    """

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


class AligningTokenizer(GraphTokenizer):
    """A GraphTokenizer of SentencePiece that also returns where pieces come from.

    The operation reports where a piece starts, but not where inside of a character that becomes
    several letters (`ﬃ`, of the pieces `of` and `fi`). So both steps of the model are done one
    after the other, see `models_of_steps`.
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        normalizer, splitter, contents = models_of_steps(tokenizer.model_bytes)
        self._normalizer = sentencepiece_operations(normalizer, f"{tokenizer.digest}_normalizer")
        self._splitter = sentencepiece_operations(splitter, f"{tokenizer.digest}_splitter")
        self._contents = tf.constant(contents)
        self._adds_space = tokenizer.model.processor.normalize("x").startswith(SPACE)
        self._part_edges = None
        if tokenizer.model.digit_comma:
            edges = [_edges_of_parts(tokenizer.model, id) for id in range(tokenizer.vocab_size)]
            self._part_edges = tf.ragged.constant(edges, tf.int64, inner_shape=(2,))
        self._joins = None
        if self._cleans_up and not self._strip_accents:
            self._joins = class_of(continues_cluster)

    def align(self, texts):
        """Returns the AlignedTexts of string [B], UTF-8."""
        cleaned = self._clean_up(texts) if self._cleans_up else texts
        normal, begins, stops = self._normalize(cleaned)
        ids, firsts, lasts = self._splitter.tokenize_with_offsets(normal)
        firsts, lasts = firsts.flat_values, lasts.flat_values
        # If the bytes of a character are pieces, all but the last are reported as empty.
        lasts = tf.maximum(lasts, firsts + 1)
        if self._part_edges is not None:
            ids, firsts, lasts = self._split_digit_comma(ids, firsts, lasts)
        is_added = (firsts == 0) & (lasts == _SPACE_BYTES) & self._adds_space
        rows = ids.value_rowids()
        before = tf.gather(_before(tf.strings.length(normal)), rows)
        firsts, lasts = _without_space(normal, firsts + before, lasts + before)
        begins, stops = tf.gather(begins, firsts), tf.gather(stops, lasts - 1)
        stops = tf.where(is_added, begins, stops)

        units, sizes, written, stays = self._units(texts)
        of_text = tf.reduce_sum(units.with_flat_values(tf.cast(written, tf.int64)), axis=1)
        before, most = tf.gather(_before(of_text), rows), tf.gather(of_text, rows)
        begins, stops = (before + tf.minimum(edges, most) for edges in (begins, stops))
        return _aligned(ids, begins, stops, units, sizes, written, stays)

    def _normalize(self, texts):
        """Returns texts as SentencePiece normalises them, string [B], and where each byte is from.

        That is the first byte of its text and one more than the last, int64 [bytes] each.
        """
        ids, begins, stops = self._normalizer.tokenize_with_offsets(texts)
        parts = ids.with_flat_values(tf.gather(self._contents, ids.flat_values))
        # Parts that are written together begin at one place, and only the last one has an end.
        begins = begins.flat_values
        opens = tf.cast(begins != _previous(begins, -1, ids), tf.int32)
        numbers = tf.cumsum(opens) - 1
        stops = tf.math.unsorted_segment_max(stops.flat_values, numbers, tf.reduce_sum(opens))
        sizes = tf.strings.length(parts.flat_values)
        begins, stops = tf.repeat(begins, sizes), tf.repeat(tf.gather(stops, numbers), sizes)
        return tf.strings.reduce_join(parts, axis=1), begins, stops

    def _split_digit_comma(self, ids, begins, stops):
        """Replaces pieces that end in digit and comma by several, as `GraphTokenizer` does."""
        parts = tf.gather(self._replacements, ids.flat_values)  # [pieces, None]
        edges = tf.gather(self._part_edges, ids.flat_values).flat_values  # [parts, 2]
        whole = parts.value_rowids()
        is_split = tf.gather(parts.row_lengths() > 1, whole)
        begins, stops = tf.gather(begins, whole), tf.gather(stops, whole)
        begins = tf.where(is_split, stops + edges[:, 0], begins)
        stops = tf.where(is_split, stops + edges[:, 1], stops)
        return ids.with_flat_values(parts).merge_dims(1, 2), begins, stops

    def _units(self, texts):
        """Splits texts into parts that are cleaned up independently, mostly one character.

        Returns:
            The arguments `units`, `sizes`, `written` and `stays` of `_aligned`.
        """
        units = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        sizes = tf.ones_like(units.flat_values, tf.int64)
        if not self._cleans_up:
            written = tf.strings.length(units.flat_values)
            return units, sizes, written, written > 0
        different, numbers = tf.unique(units.flat_values)
        is_blank = tf.gather(tf.strings.regex_full_match(different, class_of(str.isspace)), numbers)
        if self._joins is not None:
            joins = tf.gather(tf.strings.regex_full_match(different, self._joins), numbers)
            units, sizes, is_blank = _clusters(units, joins, is_blank)
        different, numbers = tf.unique(units.flat_values)
        written = tf.gather(tf.strings.length(self._clean_up(different)), numbers)
        # Of white space, one remains of each run between words: the first, which extends over all.
        places, rows = tf.range(tf.size(written)), units.value_rowids()
        words = tf.where(is_blank, -1, places)
        last_words = tf.math.unsorted_segment_max(words, rows, units.nrows())
        is_kept = ~_previous(is_blank, True, units) & (places < tf.gather(last_words, rows))
        written = tf.where(is_blank, tf.cast(is_kept, written.dtype), written)
        is_first = is_blank & ~_previous(is_blank, False, units)
        return units, sizes, written, (written > 0) | is_first


class AligningWordPiece(WordPieceGraphTokenizer):
    """A WordPieceGraphTokenizer that also returns where pieces come from.

    An unknown word is one piece. The characters before white space do not extend over it.
    """

    def align(self, texts):
        """Returns the AlignedTexts of string [B], UTF-8."""
        words, known = self._known_words(texts)
        ids, begins, stops = self._wordpiece.tokenize_with_offsets(known)
        sizes, numbers = tf.cast(tf.strings.length(words.flat_values), tf.int64), ids.value_rowids()
        is_long = tf.gather(known != words.flat_values, numbers)
        stops = tf.where(is_long, tf.gather(sizes, numbers), stops.flat_values)
        before = tf.gather(_before(sizes), numbers)
        begins, stops = begins.flat_values + before, stops + before
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        different, numbers = tf.unique(letters.flat_values)
        remaining = tf.strings.length(tf.strings.reduce_join(self.words(different), axis=1))
        written = tf.gather(remaining, numbers)
        is_blank = tf.gather(tf.strings.regex_full_match(different, class_of(is_space)), numbers)
        ids = words.with_flat_values(ids).merge_dims(1, 2)
        sizes = tf.ones_like(written, tf.int64)
        return _aligned(ids, begins, stops, letters, sizes, written, (written > 0) | is_blank)


class AligningByteBPE(ByteBPEGraphTokenizer):
    """A ByteBPEGraphTokenizer that also returns where pieces come from.

    A piece of nothing but the space that `add_prefix_space` adds has equal start and end.
    """

    def __init__(self, tokenizer: Tokenizer):
        super().__init__(tokenizer)
        contents = [bytes_of(piece) for piece in tokenizer.model.vocabulary]
        self._sizes = tf.constant(list(map(len, contents)), tf.int64)  # [V]
        # Whether the first byte is the space before a word, and no white space of its own.
        spaces = [len(content) > 1 and content[:1] == b" " != content[1:2] for content in contents]
        self._spaces = tf.constant(list(map(int, spaces)), tf.int64)  # [V]

    def align(self, texts):
        """Returns the AlignedTexts of string [B], UTF-8."""
        ids = self(texts)
        rows, sizes = ids.value_rowids(), tf.gather(self._sizes, ids.flat_values)
        given = tf.cast(tf.strings.length(texts), tf.int64)
        # Rows with one byte more than the text start with the space that was added.
        added = tf.reduce_sum(ids.with_flat_values(sizes), axis=1) - given
        stops = tf.cumsum(sizes) - tf.gather(tf.cumsum(added), rows)
        begins = stops - sizes + tf.gather(self._spaces, ids.flat_values)
        begins = tf.maximum(begins, tf.gather(_before(given), rows))
        letters = tf.strings.unicode_split(texts, "UTF-8")  # [B, None]
        written = tf.strings.length(letters.flat_values)
        sizes = tf.ones_like(written, tf.int64)
        return _aligned(ids, begins, stops, letters, sizes, written, written > 0)


def aligning_tokenizer(
    tokenizer: Tokenizer,
) -> AligningTokenizer | AligningWordPiece | AligningByteBPE:
    """Rebuilds a tokenizer of any kind for a graph, with `align`."""
    classes = {
        "unigram": AligningTokenizer,
        "wordpiece": AligningWordPiece,
        "bpe": AligningByteBPE,
    }
    with tf.init_scope():
        return classes[tokenizer.config.kind](tokenizer)


def _edges_of_parts(model, id):
    """Returns begin and stop of the pieces that replace one, in bytes after the end of that one.

    [(0, 0)] for a piece that is not replaced.
    """
    if id not in model.digit_comma:
        return [(0, 0)]
    *number, _ = model.digit_comma[id]
    sizes = [len(model.vocabulary[part].replace(SPACE, "").encode()) for part in number]
    first = -len(model.vocabulary[id].lstrip(SPACE).encode())
    if sum(sizes) != -1 - first:  # an unknown digit: each may be any of them
        return [*[(first, -1)] * len(number), (-1, 0)]
    edges = np.cumsum([first, *sizes, 1]).tolist()
    return list(itertools.pairwise(edges))


def _aligned(ids, begins, stops, units, sizes, written, stays):
    """Returns AlignedTexts of pieces, from their bytes in what the clean-up leaves of all texts.

    Args:
        ids: ragged int32 [B, None], the pieces.
        begins, stops: int64, flat. First byte of each piece, and one more than the last.
        units: ragged string [B, None], parts of the texts.
        sizes, written: int, flat. Characters of each unit, and bytes that remain of it.
        stays: bool, flat. False for units that the ones before them extend over.
    """
    # Characters are counted from the first one of the first text.
    edges = tf.concat([[0], tf.cumsum(sizes)], 0)  # of the units
    edges_of_texts = tf.gather(edges, units.row_splits)  # [B + 1]
    chosen = tf.where(stays)[:, 0]
    counts = tf.gather(written, chosen)
    start = tf.gather(edges, chosen)
    end_of_text = tf.gather(edges_of_texts[1:], tf.gather(units.value_rowids(), chosen))
    end = tf.minimum(tf.concat([start[1:], edges[-1:]], 0)[: tf.size(start)], end_of_text)
    starts, ends = (
        tf.concat([tf.repeat(values, counts), edges[-1:]], 0) for values in (start, end)
    )
    most = tf.size(starts, begins.dtype) - 1  # no text may raise
    rows = ids.value_rowids()
    first = tf.gather(starts, tf.minimum(begins, most))
    first = tf.minimum(first, tf.gather(edges_of_texts[1:], rows))
    last = tf.gather(ends, tf.clip_by_value(stops - 1, 0, most))
    last = tf.where(stops > begins, last, first)
    first, last = (values - tf.gather(edges_of_texts, rows) for values in (first, last))
    return AlignedTexts(ids, ids.with_flat_values(first), ids.with_flat_values(last))


def _without_space(texts, begins, stops):
    """Returns begins and stops of pieces without the `▁` around them, unless they are only `▁`.

    `begins` and `stops` are bytes of all normalised `texts` end to end, int64.
    """
    spaced = tf.strings.regex_replace(texts, SPACE, " " * _SPACE_BYTES)
    is_text = tf.strings.bytes_split(spaced).flat_values != " "
    places = tf.concat([[-1], tf.where(is_text)[:, 0], [tf.int64.max]], 0)
    first = tf.gather(places, tf.searchsorted(places, begins))
    last = tf.gather(places, tf.searchsorted(places, stops) - 1)
    has_text = first < stops
    return tf.where(has_text, first, begins), tf.where(has_text, last + 1, stops)


def _before(sizes):
    """Returns the sum of the sizes before each one, int64 [n]."""
    return tf.cumsum(tf.cast(sizes, tf.int64), exclusive=True)


def _previous(values, default, ragged):
    """Returns the value before each one in its row, `default` for the first of a row, flat."""
    numbers = tf.range(tf.shape(ragged.flat_values, tf.int64)[0])
    is_first = numbers == tf.gather(ragged.row_starts(), ragged.value_rowids())
    default = tf.constant(default, values.dtype)
    return tf.where(is_first, default, tf.concat([[default], values[:-1]], 0))


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
