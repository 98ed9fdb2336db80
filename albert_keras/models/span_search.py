"""The best spans of passages, from what a model says of their windows."""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE
from albert_keras.models.windows import max_context
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedTexts

_IMPOSSIBLE = -1e300  # score of a span that cannot be an answer
_NO_WINDOW = 1e6  # null score of a question without windows
_NO_SPAN = -2e6  # score if no span is possible
_OUTSIDE = -1e30  # logit of a position beyond the sequence


class Windows(NamedTuple):
    """Windows of B passages, W of them.

    Attributes:
        context: string [B]. What is read of the passages.
        aligned: AlignedTexts of them.
        rows, offsets, lengths: int64 [W]. The passage of each window, in ascending order, its first
            token, and the number of tokens.
        begins: int64 [W]. Position of the first token of the passage in the row.
        dropped: int64 [B]. Tokens of both texts that are in no window.
    """

    context: tf.Tensor
    aligned: AlignedTexts
    rows: tf.Tensor
    offsets: tf.Tensor
    lengths: tf.Tensor
    begins: tf.Tensor
    dropped: tf.Tensor

    def may_start(self) -> tf.Tensor:
        """Returns the positions where no other window shows more context: bool [W, S].

        S is that of the longest window, without the last token.
        """
        width = tf.maximum(tf.reduce_max(self.begins + self.lengths), 1)
        positions = tf.range(width) - self.begins[:, None]
        firsts = tf.gather(self.aligned.ids.row_starts(), self.rows) + self.offsets
        return max_context(positions, self.lengths, firsts)

    def positions_of(self, begin: tf.Tensor, end: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns where answers are in the windows, as a model learns them.

        Args:
            begin, end: int64 [B]. The first character of each answer, and one more than the last;
                0 and 0 for none.

        Returns:
            dict of int32 [W]: "start_positions" and "end_positions", 0 unless all of the answer is
            in the window, and "is_impossible", 1 for these.

        Raises:
            InputError: If nothing of an answer remains after clean-up.
        """
        begin, end = begin[:, None], end[:, None]
        # The first and the last token that overlap the characters.
        first = tf.reduce_sum(tf.cast(self.aligned.ends <= begin, tf.int64), axis=1)
        last = tf.reduce_sum(tf.cast(self.aligned.starts < end, tf.int64), axis=1) - 1
        size = tf.strings.length(self.context, "UTF8_CHAR")  # of what is read
        is_given = (end[:, 0] > begin[:, 0]) & (begin[:, 0] < tf.cast(size, tf.int64))
        has_answer = is_given & (first <= last)
        if tf.executing_eagerly() and tf.reduce_any(is_given & ~has_answer):
            at = int(tf.argmax(is_given & ~has_answer))
            text = tf.strings.substr(
                self.context[at], begin[at, 0], end[at, 0] - begin[at, 0], "UTF8_CHAR"
            )
            raise InputError(
                "An answer must contain text that remains after clean-up. "
                f"Received: {text.numpy().decode(errors='replace')!r}."
            )
        first, last = (tf.gather(each, self.rows) for each in (first, last))
        stops = self.offsets + self.lengths
        is_inside = tf.gather(has_answer, self.rows) & (first >= self.offsets) & (last < stops)
        shift = self.begins - self.offsets
        starts, ends = (tf.where(is_inside, each + shift, 0) for each in (first, last))
        return {
            "start_positions": tf.cast(starts, tf.int32),
            "end_positions": tf.cast(ends, tf.int32),
            "is_impossible": tf.cast(ends == 0, tf.int32),
        }


class SpanSearch:
    """Finds the best spans in windows from the outputs of a model for them.

    Args:
        can_be_none: Whether a question may have no answer.
        n_best: Number of candidates.
        max_answer_length: Largest number of tokens of an answer.
    """

    def __init__(self, can_be_none: bool, n_best: int, max_answer_length: int):
        self._has_null, self._n_best, self._longest = can_be_none, n_best, max_answer_length
        # Twice as many, since a text counts once however often it is in the context.
        self._num_spans = 2 * n_best

    def answers(
        self, windows: Windows, outputs: Mapping[str, tf.Tensor], null_threshold: float = 0.0
    ) -> dict[str, tf.Tensor]:
        """Finds the answers in all windows of the part of the context that is read.

        Args:
            windows: W of them.
            outputs: As of `outputs_of` of the model, [W, ...] by name.
            null_threshold: The `null_score` from which a question has no answer.

        Returns:
            dict. `answer` string [B], "" for none; `start` and `end` int32 [B], its first character
            in the context and one more than the last, -1 for none (a byte that is not UTF-8 counts
            as one U+FFFD); `score` float32 [B], of the best span, whether it is the answer or not:
            the sum of the logits (squad1) or log-probabilities of start and end, -2e6 if no span is
            possible; `dropped_tokens` int32 [B], of the question beyond `max_query_length` and of
            both texts beyond the bytes that are read. If a question may have no answer also
            `null_score` float32 [B]: from `null_threshold` on it has none.
            The best spans, whether or not the question is left unanswered: `nbest_starts`,
            `nbest_ends` int32 and `nbest_start_scores`, `nbest_end_scores` float32 [B, K], the best
            first, -1 and -2e6 where there are fewer.
        """
        rows, offsets, begins = windows.rows, windows.offsets, windows.begins
        scores, starts, ends, start_scores, end_scores = self._best_of_outputs(
            outputs, windows.may_start(), begins, begins + windows.lengths
        )
        starts, ends = (
            tf.cast(edges, tf.int64) - (begins - offsets)[:, None] for edges in (starts, ends)
        )
        batch = tf.shape(windows.context, tf.int64)[0]
        order, is_span = _best_of_questions(scores, rows, batch, self._num_spans)
        starts, ends, start_scores, end_scores = (
            tf.where(is_span, _at(values, order), filler)
            for values, filler in ((starts, 0), (ends, 0), (start_scores, 0.0), (end_scores, 0.0))
        )
        begin, end = windows.aligned.characters(starts, ends)
        end = tf.where(is_span, end, begin)
        texts, begin, end = _texts_at(windows.context, begin, end)
        best = tf.where(is_span, _at(scores, order), _NO_SPAN)[:, 0]
        is_answer = is_span[:, 0]
        answers = {
            "score": tf.cast(best, tf.float32),
            "dropped_tokens": tf.cast(windows.dropped, tf.int32),
            "nbest_starts": begin,
            "nbest_ends": end,
            "nbest_start_scores": tf.where(is_span, start_scores, _NO_SPAN / 2),
            "nbest_end_scores": tf.where(is_span, end_scores, _NO_SPAN / 2),
        }
        if self._has_null:
            null_scores = tf.math.unsorted_segment_min(outputs["null_logits"], rows, batch)
            has_window = windows.aligned.ids.row_lengths() > 0
            null_scores = tf.where(has_window, null_scores, _NO_WINDOW)
            is_answer &= null_scores < null_threshold
            answers["null_score"] = null_scores
        answers["answer"] = tf.where(is_answer, texts[:, 0], "")
        for name, edges in (("start", begin), ("end", end)):
            answers[name] = tf.where(is_answer, edges[:, 0], -1)
        return answers

    def _best_of_outputs(self, outputs, may_start, begins, stops):
        """Returns the best K spans of each window.

        They are score (float64, `_IMPOSSIBLE` for no span), start and end position (int64), start
        and end score (float32), all [W, K].
        """
        starts, ends, start_scores, end_scores = self._candidates(outputs)  # [W, spans]
        is_valid = (starts >= begins[:, None]) & (ends >= starts) & (ends < stops[:, None])
        is_valid &= (starts < stops[:, None]) & (ends - starts < self._longest)
        inside = tf.minimum(starts, tf.shape(may_start, tf.int64)[1] - 1)
        is_valid &= tf.gather(may_start, inside, batch_dims=1)
        scores = tf.cast(start_scores, tf.float64) + tf.cast(end_scores, tf.float64)
        scores = tf.where(is_valid, scores, _IMPOSSIBLE)
        count = min(self._num_spans, starts.shape[1])
        scores, best = tf.math.top_k(scores, count)  # the first of equal ones
        values = (starts, ends, start_scores, end_scores)
        return [scores, *(tf.gather(one, best, batch_dims=1) for one in values)]

    def _candidates(self, outputs):
        """Returns starts and ends, int64, and their scores, float32, all [W, spans], the
        ends of the first start first."""
        if self._has_null:
            ends, end_scores = outputs["end_indices"], outputs["end_log_probs"]
            per_start = ends.shape[1] // outputs["start_indices"].shape[1]
            starts = tf.repeat(outputs["start_indices"], per_start, axis=1)
            start_scores = tf.repeat(outputs["start_log_probs"], per_start, axis=1)
        else:
            n_best = self._n_best
            tops = []
            for name in ("start_logits", "end_logits"):
                logits = tf.pad(outputs[name], [[0, 0], [0, n_best]], constant_values=_OUTSIDE)
                tops.append(tf.math.top_k(logits, n_best))
            start_scores, starts = (tf.repeat(values, n_best, axis=1) for values in tops[0])
            end_scores, ends = (tf.tile(values, [1, n_best]) for values in tops[1])
        return tf.cast(starts, tf.int64), tf.cast(ends, tf.int64), start_scores, end_scores


def answer_mask(packed: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the "p_mask" of rows: answers must be in the second segment, or at [CLS] for none."""
    mask, segments = packed["input_mask"], packed["segment_ids"]
    position = tf.range(tf.shape(mask)[1])[None]
    last_sep = tf.reduce_sum(mask, axis=1, keepdims=True) - 1
    may_be_answer = ((segments > 0) & (position < last_sep)) | (position == 0)
    return 1 - tf.cast(may_be_answer, tf.int32)


def _best_of_questions(scores, rows, batch, count):
    """Finds the best spans of each of B questions, `batch`, in all of its windows.

    `scores` are float64 [W, K], and `rows` int64 [W], the question of each window, in ascending
    order. Returns int64 [B, `count`], their numbers in `scores`, flat; and whether there is such a
    span, bool.
    """
    windows = tf.RaggedTensor.from_value_rowids(scores, rows, batch)  # [B, None, K]
    padded = windows.to_tensor(_IMPOSSIBLE)
    width = tf.shape(padded, tf.int64)[1] * tf.shape(padded, tf.int64)[2]
    of_question = tf.reshape(padded, [batch, width])
    missing = tf.maximum(count - width, 0)
    of_question = tf.pad(of_question, [[0, 0], [0, missing]], constant_values=_IMPOSSIBLE)
    best, order = tf.math.top_k(of_question, count)  # the first of equal ones
    first_windows = windows.row_splits[:-1, None] * tf.shape(scores, tf.int64)[1]
    return first_windows + tf.cast(order, tf.int64), best > _IMPOSSIBLE


def _at(values, numbers):
    """Returns values [W, K] at flat numbers, [B, count]; any value where a number is too large."""
    flat = tf.pad(tf.reshape(values, [-1]), [[0, 1]])
    return tf.gather(flat, tf.minimum(numbers, tf.size(flat, tf.int64) - 1))


def _texts_at(texts, starts, ends):
    """Returns parts of texts, UTF-8 [B], between int64 [B, K] without the white space around them.

    These are string [B, K], and start and end in characters, int32 [B, K] each, -1 of "".
    """
    lengths = tf.maximum(ends - starts, 0)
    starts = tf.where(lengths > 0, starts, 0)
    found = tf.strings.substr(texts[:, None], starts, lengths, unit="UTF8_CHAR")
    found = tf.strings.regex_replace(found, f"{WHITE_SPACE}+$", "")
    stripped = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
    left = tf.strings.length(stripped, unit="UTF8_CHAR")
    starts = tf.cast(starts, tf.int32) + tf.strings.length(found, unit="UTF8_CHAR") - left
    has_text = left > 0
    return stripped, tf.where(has_text, starts, -1), tf.where(has_text, starts + left, -1)
