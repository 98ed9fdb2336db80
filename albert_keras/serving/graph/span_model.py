"""Fine-tuned models that answer questions about a context: windows, the best span, its characters.

Equivalent to `tasks/spans/windows.py` and `tasks/spans/task.py` for one model.
"""

import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE, num_tokens_of, readable, row_slices
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.graph.windows import compute_in_parts, lay_out_windows, max_context
from albert_keras.tasks.spans.windows import check_room
from data_pipeline.limits import LONG_TEXT_FACTOR
from data_pipeline.tokenizers.offsets import aligning_tokenizer

_IMPOSSIBLE = -1e300  # score of a span that cannot be an answer
_NO_WINDOW = 1e6  # null score of a question without windows
_NO_SPAN = -2e6  # score if no span is possible
_OUTSIDE = -1e30  # logit of a position beyond the sequence


class SpanModel(TaskModel):
    """Answers that are spans of a context.

    question_answering  `question`, `context` string [B] → see `answers`
    serving_default     `text` string [B], question and context separated by the first tab

    `encode` and `explain_tokens` take the same text, and return the first window. Questions with
    the null score `null_threshold` or more are left unanswered; squad1 always answers.
    """

    _make_tokenizer = staticmethod(aligning_tokenizer)

    def _functions(self):
        longest_question = self._config.max_query_length
        check_room(self.packer.max_seq_length, longest_question, self.packer.num_special)
        self._has_null = self._null_threshold is not None
        # Twice as many, since a text counts once however often it is in the context.
        self._num_spans = 2 * self._config.n_best
        return {
            "serving_default": string_function(
                lambda text: self.answers(*self._split_at_tab(text)), "text"
            ),
            "question_answering": string_function(self.answers, "question", "context"),
        }

    def _sequences(self, text):
        texts = self._split_at_tab(text)
        question, context = ids = [self.ids(part) for part in texts]
        num_tokens = sum(self.num_tokens(*part) for part in zip(texts, ids, strict=True))
        question = question[:, : self._config.max_query_length]
        room = self.packer.max_seq_length - self.packer.num_special - question.row_lengths()
        lengths = tf.minimum(context.row_lengths(), room)
        packed = self.packer.join(question, row_slices(context, 0, lengths))
        return packed, self.packer.num_dropped(packed, num_tokens)

    def answers(self, question, context):
        """Finds the answers in all windows of the part of the context that is read.

        Args:
            question, context: string [B].

        Returns:
            dict. `answer` string [B], "" for none; `start` and `end` int32 [B], its first character
            in the context and one more than the last, -1 for none (a byte that is not UTF-8 counts
            as one U+FFFD); `score` float32 [B], of the best span, whether it is the answer or not:
            the sum of the logits (squad1) or log-probabilities of start and end, -2e6 if no span is
            possible; `dropped_tokens` int32 [B], of the question beyond `max_query_length` and of
            both texts beyond the bytes that are read. For squad2 also `null_score` float32 [B].
            The best spans, whether or not the question is left unanswered: `nbest_starts`,
            `nbest_ends` int32 and `nbest_start_scores`, `nbest_end_scores` float32 [B, K], the best
            first, -1 and -2e6 where there are fewer.
        """
        context_bytes = LONG_TEXT_FACTOR * self.packer.max_bytes
        whole_context, context = context, readable(context, context_bytes)
        aligned = self.tokenizer.align(context)
        whole_query = self.ids(question)
        query = whole_query[:, : self._config.max_query_length]
        dropped = self.num_tokens(question, whole_query) - query.row_lengths()
        dropped += num_tokens_of(whole_context, aligned.ids, context_bytes)
        dropped -= aligned.ids.row_lengths()
        budget = self.packer.max_seq_length - self.packer.num_special - query.row_lengths()
        totals = aligned.ids.row_lengths()
        rows, offsets, lengths = lay_out_windows(totals, budget, self._config.doc_stride)
        query_lengths = tf.gather(query.row_lengths(), rows)
        packed = self.packer.join(
            row_slices(query, 0, query_lengths, rows),
            row_slices(aligned.ids, offsets, lengths, rows),
        )
        begins = query_lengths + 1 + self.packer.pair_separators
        positions = tf.range(tf.shape(packed["input_ids"])[1], dtype=tf.int64) - begins[:, None]
        firsts = tf.gather(aligned.ids.row_starts(), rows) + offsets
        may_start = max_context(positions, lengths, firsts)
        (scores, starts, ends, start_scores, end_scores), null_logits = self._best(
            packed, may_start, begins, begins + lengths
        )
        starts, ends = (
            tf.cast(edges, tf.int64) - (begins - offsets)[:, None] for edges in (starts, ends)
        )
        batch = tf.shape(context, tf.int64)[0]
        order, is_span = _best_of_questions(scores, rows, batch, self._num_spans)
        starts, ends, start_scores, end_scores = (
            tf.where(is_span, _at(values, order), filler)
            for values, filler in ((starts, 0), (ends, 0), (start_scores, 0.0), (end_scores, 0.0))
        )
        begin, end = aligned.characters(starts, ends)
        end = tf.where(is_span, end, begin)
        texts, begin, end = _texts_at(context, begin, end)
        best = tf.where(is_span, _at(scores, order), _NO_SPAN)[:, 0]
        is_answer = is_span[:, 0]
        answers = {
            "score": tf.cast(best, tf.float32),
            "dropped_tokens": tf.cast(dropped, tf.int32),
            "nbest_starts": begin,
            "nbest_ends": end,
            "nbest_start_scores": tf.where(is_span, start_scores, _NO_SPAN / 2),
            "nbest_end_scores": tf.where(is_span, end_scores, _NO_SPAN / 2),
        }
        if null_logits is not None:
            null_scores = tf.math.unsorted_segment_min(null_logits, rows, batch)
            null_scores = tf.where(totals > 0, null_scores, _NO_WINDOW)
            is_answer &= null_scores < self._null_threshold
            answers["null_score"] = null_scores
        answers["answer"] = tf.where(is_answer, texts[:, 0], "")
        for name, edges in (("start", begin), ("end", end)):
            answers[name] = tf.where(is_answer, edges[:, 0], -1)
        return answers

    def _predict_tokens(self, packed):
        """Returns the outputs of the model; answers must be in the second segment or at [CLS]."""
        mask, segments = packed["input_mask"], packed["segment_ids"]
        position = tf.range(tf.shape(mask)[1])[None]
        last_sep = tf.reduce_sum(mask, axis=1, keepdims=True) - 1
        may_be_answer = ((segments > 0) & (position < last_sep)) | (position == 0)
        return self.outputs(packed | {"p_mask": 1 - tf.cast(may_be_answer, tf.int32)})

    def _best(self, packed, *more):
        """Returns the best K spans of each window, computed for a few windows at a time.

        These are a list of score (float64, `_IMPOSSIBLE` for no span), start and end position
        (int64), start and end score (float32), all [W, K]; and null logits [W] or None.
        """
        types = (tf.float64, tf.int64, tf.int64, tf.float32, tf.float32)
        specs = [tf.TensorSpec([None, None], dtype) for dtype in types]
        specs += [tf.TensorSpec([None], tf.float32)] * self._has_null

        def best(packed, *more):
            return self._best_of_outputs(self._predict_tokens(packed), *more)

        found = compute_in_parts(best, specs, packed, *more)
        return found[: len(types)], found[-1] if self._has_null else None

    def _best_of_outputs(self, outputs, may_start, begins, stops):
        starts, ends, start_scores, end_scores = self._candidates(outputs)  # [W, spans]
        is_valid = (starts >= begins[:, None]) & (ends >= starts) & (ends < stops[:, None])
        is_valid &= (starts < stops[:, None]) & (ends - starts < self._config.max_answer_length)
        inside = tf.minimum(starts, tf.shape(may_start, tf.int64)[1] - 1)
        is_valid &= tf.gather(may_start, inside, batch_dims=1)
        scores = tf.cast(start_scores, tf.float64) + tf.cast(end_scores, tf.float64)
        scores = tf.where(is_valid, scores, _IMPOSSIBLE)
        count = min(self._num_spans, starts.shape[1])
        scores, best = tf.math.top_k(scores, count)  # the first of equal ones
        values = (starts, ends, start_scores, end_scores)
        found = [scores, *(tf.gather(one, best, batch_dims=1) for one in values)]
        return [*found, outputs["null_logits"]] if self._has_null else found

    def _candidates(self, outputs):
        """Returns starts and ends, int64, and their scores, float32, all [W, spans], in the order
        of `decode`."""
        if self._has_null:
            ends, end_scores = outputs["end_indices"], outputs["end_log_probs"]
            per_start = ends.shape[1] // outputs["start_indices"].shape[1]
            starts = tf.repeat(outputs["start_indices"], per_start, axis=1)
            start_scores = tf.repeat(outputs["start_log_probs"], per_start, axis=1)
        else:
            n_best = self._config.n_best
            tops = []
            for name in ("start_logits", "end_logits"):
                logits = tf.pad(outputs[name], [[0, 0], [0, n_best]], constant_values=_OUTSIDE)
                tops.append(tf.math.top_k(logits, n_best))
            start_scores, starts = (tf.repeat(values, n_best, axis=1) for values in tops[0])
            end_scores, ends = (tf.tile(values, [1, n_best]) for values in tops[1])
        return tf.cast(starts, tf.int64), tf.cast(ends, tf.int64), start_scores, end_scores


def _best_of_questions(scores, rows, batch, count):
    """Finds the best spans of each question in all of its windows.

    Args:
        scores: float64 [W, K], of the spans of windows.
        rows: int64 [W]. The question of each window, in ascending order.
        batch: Number of questions, B.
        count: Number of spans of a question.

    Returns:
        int64 [B, count], their numbers in `scores`, flat; and whether there is such a span, bool.
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
    """Returns parts of texts without the white space around them.

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
    stripped = tf.strings.regex_replace(found, f"^{WHITE_SPACE}+", "")
    left = tf.strings.length(stripped, unit="UTF8_CHAR")
    starts = tf.cast(starts, tf.int32) + tf.strings.length(found, unit="UTF8_CHAR") - left
    has_text = left > 0
    return stripped, tf.where(has_text, starts, -1), tf.where(has_text, starts + left, -1)
