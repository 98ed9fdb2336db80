"""Answers read out of a context, in the graph: windows, the best span, its characters.

Does what `tasks/squad_features.py` and `tasks/squad_decoding.py` do for one model.
"""

import functools
import sys
import unicodedata
from typing import NamedTuple

import sentencepiece
import tensorflow as tf

from albert_keras.serving.text_packing import (
    WHITE_SPACE,
    character_class,
    pieces_from,
    ragged_cumsum,
    readable,
)
from albert_keras.tasks.squad_windows import SquadWindowConfig
from data_pipeline.cleanup import clean_up
from data_pipeline.graph_tokenization import GraphTokenizer
from data_pipeline.word_starts import SPACE

#: Windows that are computed at a time: their number has no bound, memory has.
WINDOWS_AT_A_TIME = 32

_NO_SPAN = -1e300  # the score of what can be no answer
_NO_WINDOW = 1e6  # the null score of a question without windows
_NOTHING_LEFT = -2e6  # the score where no span is possible
_NOWHERE = -1e30  # the logit of a place beyond the row
#: Controls, formats, marks and separators; U+FFFD is So.
_MAY_BE_BLANK = ("Cc", "Cf", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "So", "Sk", "Lm")


class AlignedTexts(NamedTuple):
    """Pieces of B texts and where they come from.

    A unit is a stretch of the raw text that becomes something in the cleaned one by itself, mostly
    one character, with what follows it and becomes nothing.

    Attributes:
        ids: ragged int32 [B, None].
        starts, ends: ragged int64 [B, None]. The bytes of the cleaned text a piece comes from.
        clean_ends: int64 [B, U]. Where each unit ends in the cleaned text, in bytes.
        raw_edges: int64 [B, U + 1]. Where each begins in the raw text, in characters, and where
            the last one ends.
    """

    ids: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor
    clean_ends: tf.Tensor
    raw_edges: tf.Tensor

    def characters(self, first, last):
        """Returns the raw characters that stretches of pieces come from.

        Args:
            first, last: int64 [B]. The first and the last piece in each text, in range.

        Returns:
            int64 [B], int64 [B]. The first character, and one more than the last.
        """
        most = tf.maximum(self.ids.row_splits[-1] - 1, 0)
        places = (tf.minimum(self.ids.row_starts() + piece, most) for piece in (first, last))
        start, end = (
            tf.gather(tf.pad(offsets.flat_values, [[0, 1]]), place)
            for offsets, place in zip((self.starts, self.ends), places, strict=True)
        )
        end = tf.where(end > start, self._edge(end - 1, 1), self._edge(start, 0))
        return self._edge(start, 0), end

    def _edge(self, byte, which):
        """Returns where the unit that a byte of the cleaned text is of begins (0) or ends (1)."""
        unit = tf.reduce_sum(tf.cast(self.clean_ends <= byte[:, None], tf.int32), axis=1)
        unit = tf.minimum(unit + which, tf.shape(self.raw_edges)[1] - 1)
        return tf.gather(self.raw_edges, unit, batch_dims=1)


class AligningTokenizer(GraphTokenizer):
    """A GraphTokenizer that tells where pieces come from, as `TextAligner` does.

    SentencePiece tells where each piece begins, `TextAligner` knows it of each letter. So a piece
    may lack a character here that became several, of this piece and the next (`ﬃ` as `of` and
    `fi`), or be narrower where full-width digits and comma are split. Where the clean-up is in the
    graph that happens only to what SentencePiece itself normalises further.
    """

    def __init__(self, tokenizer):
        super().__init__(tokenizer)
        self._space = tokenizer.id_of(SPACE)
        self._blank = character_class(_blank_ranges(tokenizer))
        self._part_bytes = None
        if tokenizer.digit_comma:
            rows = [tokenizer.digit_comma.get(id, [id]) for id in range(tokenizer.vocab_size)]
            size = [
                len(tokenizer.piece_of(id).replace(SPACE, "").encode())
                for id in range(tokenizer.vocab_size)
            ]
            self._part_bytes = tf.ragged.constant([[size[id] for id in row] for row in rows])
        self._joins = None
        if self._cleans_up and not self._strip_accents:
            self._joins = character_class(_joining_ranges())

    def align(self, texts):
        """Returns the AlignedTexts of string [B], UTF-8."""
        cleaned = self._clean_up(texts) if self._cleans_up else texts
        ids, starts, ends = self._sentencepiece.tokenize_with_offsets(cleaned)
        # Of several pieces of one character all but the last have no bytes.
        starts, stops = starts.flat_values, ends.flat_values
        is_part = (stops == starts) & (ids.flat_values != self._space)
        stops = tf.where(is_part, starts + 1, stops)
        starts, ends = ids.with_flat_values(starts), ids.with_flat_values(stops)
        if self._replacements is not None:
            ids, starts, ends = self._split(ids, starts, ends)
        return AlignedTexts(ids, starts, ends, *self._units(texts))

    def texts_at(self, texts, starts, ends):
        """Takes stretches of texts, without what is before them and means space or nothing.

        Args:
            texts: string [B]. UTF-8.
            starts, ends: int64 [B]. In characters.

        Returns:
            tuple. string [B]; int32 [B] and int32 [B], where they are, -1 where they are "".
        """
        lengths = tf.maximum(ends - starts, 0)
        starts = tf.where(lengths > 0, starts, 0)
        found = tf.strings.substr(texts, starts, lengths, unit="UTF8_CHAR")
        found = tf.strings.regex_replace(found, f"{WHITE_SPACE}+$", "")
        sizes = tf.strings.length(found, unit="UTF8_CHAR")
        stripped = tf.strings.regex_replace(found, f"^{self._blank}+", "")
        spaceless = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
        stripped = tf.where(stripped == "", spaceless, stripped)
        left = tf.strings.length(stripped, unit="UTF8_CHAR")
        starts = tf.cast(starts, tf.int32) + sizes - left
        is_there = left > 0
        return stripped, tf.where(is_there, starts, -1), tf.where(is_there, starts + left, -1)

    def _split(self, ids, starts, ends):
        """Puts others in place of a piece that ends in digit and comma, from its end on."""
        parts = tf.gather(self._replacements, ids.flat_values)  # [pieces, None]
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
        stays = written > 0
        clean_ends = tf.ragged.boolean_mask(ragged_cumsum(written), stays)
        begins = tf.ragged.boolean_mask(ends - sizes, stays)
        total = tf.reduce_sum(sizes, axis=1)[:, None]
        return clean_ends.to_tensor(tf.int64.max), tf.concat([begins, total], axis=1).to_tensor()


class SpanReader:
    """Answers questions about contexts.

    Args:
        tokenizer: AligningTokenizer.
        stored: StoredModel. Of an AlbertForSpans.
        packer: TextPacker.
        config: TaskConfig. Of the task.
        null_threshold: float or None. From which null score on a question is left unanswered; None
            is a model that always answers.

    Raises:
        InputError: If rows are too short for a question and a passage.
    """

    def __init__(self, tokenizer, stored, packer, config, null_threshold=None):
        SquadWindowConfig(
            max_seq_length=packer.max_seq_length,
            doc_stride=config.doc_stride,
            max_query_length=config.max_query_length,
        )
        self._tokenizer, self._stored, self._packer = tokenizer, stored, packer
        self._config, self._null_threshold = config, null_threshold
        self._can_be_none = null_threshold is not None

    def answers(self, question, context):
        """Reads the answers out of all windows of the first `TextPacker.max_bytes` bytes.

        Args:
            question, context: string [B].

        Returns:
            dict. `answer` string [B], "" for none; `start` and `end` int32 [B], its first character
            in the context and one more than the last, -1 for none (a byte that is not UTF-8 counts
            as the U+FFFD that is read for it); `score` float32 [B], of the best span, given as the
            answer or not: of start and end the logits (squad1) or log-probabilities together, -2e6
            where no span is possible. Of squad2 `null_score` float32 [B].
        """
        context = readable(context, self._packer.max_bytes)
        aligned = self._tokenizer.align(context)
        query = self._tokenizer(readable(question, self._packer.max_bytes))
        query = query[:, : self._config.max_query_length]
        rows, offsets, lengths = self._windows(query.row_lengths(), aligned.ids.row_lengths())
        query_lengths = tf.gather(query.row_lengths(), rows)
        packed = self._packer.lay_out(
            pieces_from(query, 0, query_lengths, rows),
            pieces_from(aligned.ids, offsets, lengths, rows),
        )
        begins = query_lengths + 2
        places = tf.range(tf.shape(packed["input_ids"])[1], dtype=tf.int64) - begins[:, None]
        pieces = tf.gather(aligned.ids.row_starts(), rows) + offsets
        may_start = max_context(places, lengths, pieces)
        scores, starts, ends, null_logits = self._best(packed, may_start, begins, begins + lengths)

        batch = tf.shape(context, tf.int64)[0]
        best = tf.math.unsorted_segment_max(scores, rows, batch)
        count = tf.shape(rows, tf.int64)[0]
        numbers = tf.where(scores == tf.gather(best, rows), tf.range(count), count)
        winner = tf.minimum(tf.math.unsorted_segment_min(numbers, rows, batch), count)
        first, last = (
            tf.gather(tf.pad(place - begins + offsets, [[0, 1]]), winner)
            for place in (starts, ends)
        )
        is_span = (best > _NO_SPAN) & (winner < count)
        answers = {"score": tf.cast(tf.where(is_span, best, _NOTHING_LEFT), tf.float32)}
        is_answer = is_span
        if null_logits is not None:
            null_scores = tf.math.unsorted_segment_min(null_logits, rows, batch)
            null_scores = tf.where(winner < count, null_scores, _NO_WINDOW)
            is_answer &= null_scores < self._null_threshold
            answers["null_score"] = null_scores
        first, last = (tf.where(is_answer, place, 0) for place in (first, last))
        begin, end = aligned.characters(first, last)
        end = tf.where(is_answer, end, begin)
        found = self._tokenizer.texts_at(context, begin, end)
        return dict(zip(("answer", "start", "end"), found, strict=True)) | answers

    def outputs(self, packed):
        """Returns the outputs of the model; where an answer may be is told by the segments."""
        mask, segments = packed["input_mask"], packed["segment_ids"]
        place = tf.range(tf.shape(mask)[1])[None]
        last_sep = tf.reduce_sum(mask, axis=1, keepdims=True) - 1
        may_be_answer = ((segments > 0) & (place < last_sep)) | (place == 0)
        return self._stored.outputs(packed | {"p_mask": 1 - tf.cast(may_be_answer, tf.int32)})

    def _windows(self, query_lengths, totals):
        """Returns the context, first piece and number of pieces of each window, int64 [W]."""
        budget = self._packer.max_seq_length - 3 - query_lengths
        step = tf.minimum(budget, self._config.doc_stride)
        further = -((budget - totals) // step)
        counts = tf.where(totals > 0, 1 + tf.maximum(further, 0), 0)
        numbers = tf.ragged.range(counts)
        rows = numbers.value_rowids()
        offsets = numbers.flat_values * tf.gather(step, rows)
        lengths = tf.minimum(tf.gather(totals, rows) - offsets, tf.gather(budget, rows))
        return rows, offsets, lengths

    def _best(self, packed, *more):
        """Returns score (float64), start and end place (int64) of the best span of each window, and
        the null logits or None: [W] each; some windows at a time."""
        count = tf.shape(packed["input_ids"])[0]
        parts = tf.maximum(-(-count // WINDOWS_AT_A_TIME), 1)
        types = (tf.float64, tf.int64, tf.int64) + (tf.float32,) * self._can_be_none
        arrays = [
            tf.TensorArray(dtype, parts, infer_shape=False, element_shape=[None]) for dtype in types
        ]

        def compute(part, arrays):
            here = slice(part * WINDOWS_AT_A_TIME, (part + 1) * WINDOWS_AT_A_TIME)
            outputs = self.outputs({name: values[here] for name, values in packed.items()})
            found = self._best_of_outputs(outputs, *(values[here] for values in more))
            return part + 1, [
                array.write(part, value) for array, value in zip(arrays, found, strict=True)
            ]

        _, arrays = tf.while_loop(
            lambda part, _: part < parts, compute, (0, arrays), parallel_iterations=1
        )
        found = [array.concat() for array in arrays]
        return found if self._can_be_none else [*found, None]

    def _best_of_outputs(self, outputs, may_start, begins, stops):
        starts, ends, scores = self._candidates(outputs)  # [W, spans]
        keeps = (starts >= begins[:, None]) & (ends >= starts) & (ends < stops[:, None])
        keeps &= (starts < stops[:, None]) & (ends - starts < self._config.max_answer_length)
        inside = tf.minimum(starts, tf.shape(may_start, tf.int64)[1] - 1)
        keeps &= tf.gather(may_start, inside, batch_dims=1)
        scores = tf.where(keeps, scores, _NO_SPAN)
        best = tf.argmax(scores, axis=1)  # the first of equals
        found = [tf.gather(values, best, batch_dims=1) for values in (scores, starts, ends)]
        return [*found, outputs["null_logits"]] if self._can_be_none else found

    def _candidates(self, outputs):
        """Returns starts and ends, int64, and scores, float64, all [W, spans], in order of
        `decode_v1` or `decode_v2`."""
        if self._can_be_none:
            ends, end_scores = outputs["end_indices"], outputs["end_log_probs"]
            per_start = ends.shape[1] // outputs["start_indices"].shape[1]
            starts = tf.repeat(outputs["start_indices"], per_start, axis=1)
            start_scores = tf.repeat(outputs["start_log_probs"], per_start, axis=1)
        else:
            n_best = self._config.n_best
            tops = []
            for name in ("start_logits", "end_logits"):
                logits = tf.pad(outputs[name], [[0, 0], [0, n_best]], constant_values=_NOWHERE)
                tops.append(tf.math.top_k(logits, n_best))
            start_scores, starts = (tf.repeat(values, n_best, axis=1) for values in tops[0])
            end_scores, ends = (tf.tile(values, [1, n_best]) for values in tops[1])
        scores = tf.cast(start_scores, tf.float64) + tf.cast(end_scores, tf.float64)
        return tf.cast(starts, tf.int64), tf.cast(ends, tf.int64), scores


def max_context(places, lengths, firsts):
    """Tells where no other window shows more of what stands around a piece.

    Args:
        places: int64 [W, S]. The number of the piece at each place, from the window's first on.
        lengths: int64 [W]. Pieces of each window.
        firsts: int64 [W]. The first piece of each, numbered through all contexts.

    Returns:
        bool [W, S]. As `max_context` of `tasks/squad_windows.py`; False outside the context.
    """
    lengths = lengths[:, None]
    is_inside = (places >= 0) & (places < lengths)
    scores = tf.cast(tf.minimum(places, lengths - 1 - places), tf.float64)
    scores += 0.01 * tf.cast(lengths, tf.float64)
    total = tf.maximum(tf.reduce_max(firsts[:, None] + lengths), 0)
    pieces = tf.where(is_inside, firsts[:, None] + places, total)
    best = tf.math.unsorted_segment_max(scores, pieces, total + 1)
    is_best = is_inside & (scores == tf.gather(best, pieces))
    windows = tf.range(tf.shape(places, tf.int64)[0])[:, None]
    numbers = tf.where(is_best, windows, tf.int64.max)
    first = tf.math.unsorted_segment_min(numbers, pieces, total + 1)
    return is_best & (windows == tf.gather(first, pieces))


def _starts_row(ragged):
    """Tells of flat values which are the first of a row, bool."""
    places = tf.range(tf.shape(ragged.flat_values, tf.int64)[0])
    return places == tf.gather(ragged.row_starts(), ragged.value_rowids())


def _after(flags, default, ragged):
    """Returns the flag of the value before each, in the same row: bool, flat."""
    return tf.where(_starts_row(ragged), default, tf.concat([[default], flags[:-1]], 0))


def _kept_spaces(units, is_space):
    """Counts what the clean-up leaves of white space: one of a run between words, int32, flat."""
    words = units.with_flat_values(tf.cast(~is_space, tf.int64))
    left = tf.gather(tf.reduce_sum(words, axis=1), words.value_rowids())
    is_before_word = ragged_cumsum(words).flat_values < left
    return tf.cast(is_space & is_before_word & ~_after(is_space, True, units), tf.int32)


def _clusters(letters, joins, is_space):
    """Joins letters with those that composition may join to them.

    Returns:
        tuple. The clusters, ragged string [B, None]; flat, how many letters each has, int64, and
        whether it is white space.
    """
    opens = ~joins | is_space | _after(is_space, True, letters)
    numbers = tf.cumsum(tf.cast(opens, tf.int32)) - 1
    counts = letters.with_flat_values(tf.cast(opens, tf.int64))
    total = tf.reduce_sum(tf.cast(opens, tf.int32))
    joined = tf.strings.unsorted_segment_join(letters.flat_values, numbers, total)
    clusters = tf.RaggedTensor.from_row_lengths(joined, tf.reduce_sum(counts, axis=1))
    sizes = tf.math.unsorted_segment_sum(tf.ones_like(numbers, tf.int64), numbers, total)
    return clusters, sizes, tf.boolean_mask(is_space, opens)


def _blank_ranges(tokenizer):
    """Lists the characters that the tokenizer makes space or nothing of."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    texts = [f"a{chr(code)}a" for code in _codes_that_may_be_blank()]
    if tokenizer.config.cleanup == "reference":
        settings = tokenizer.config.lower_case, tokenizer.config.strip_accents
        texts = [clean_up(text, *settings) for text in texts]
    normal = processor.normalize(texts)
    return [
        (code, code)
        for code, text in zip(_codes_that_may_be_blank(), normal, strict=True)
        if text.removeprefix(SPACE) in ("aa", f"a{SPACE}a")
    ]


@functools.cache
def _codes_that_may_be_blank():
    categories = map(unicodedata.category, map(chr, range(1, sys.maxunicode + 1)))
    return [code for code, category in enumerate(categories, 1) if category in _MAY_BE_BLANK]


def _joining_ranges():
    """Lists the characters that composition may join with the one before them."""
    characters = [chr(code) for code in range(sys.maxunicode + 1)]
    joining = set()
    for character in characters:
        joining.update(unicodedata.normalize("NFD", character)[1:])
    firsts = (unicodedata.normalize("NFKD", character)[0] for character in characters)
    codes = [
        code
        for code, first in enumerate(firsts)
        if unicodedata.combining(first) or first in joining
    ]
    return [(code, code) for code in codes]
