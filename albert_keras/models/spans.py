"""A model that answers questions with a span of a passage.

Source: `squad_utils.py` in google-research/albert.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.layers.text_packing import WHITE_SPACE, num_tokens_of, readable, row_slices
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.targets import plain
from albert_keras.models.task_heads import SpansHead, SpansOrNoneHead
from albert_keras.models.text_model import AlbertForTexts, Losses, Tensors, of_classes
from albert_keras.models.windows import compute_in_parts, lay_out_windows, max_context
from data_pipeline.errors import InputError
from data_pipeline.limits import LONG_TEXT_FACTOR
from data_pipeline.tokenizers.offsets import AlignedTexts, aligning_tokenizer

_IMPOSSIBLE = -1e300  # score of a span that cannot be an answer
_NO_WINDOW = 1e6  # null score of a question without windows
_NO_SPAN = -2e6  # score if no span is possible
_OUTSIDE = -1e30  # logit of a position beyond the sequence


def check_room(max_seq_length: int, max_query_length: int, num_special: int) -> None:
    """Raises InputError if a question could leave no room for the passage.

    `num_special` is `Tokenizer.num_special`.
    """
    if max_seq_length <= max_query_length + num_special:
        raise InputError(
            f"`max_seq_length` must be more than `max_query_length` + {num_special}, the special "
            f"tokens of this vocabulary. Received: max_seq_length={max_seq_length}, "
            f"max_query_length={max_query_length}."
        )


@keras.saving.register_keras_serializable("albert_keras")
class AlbertSpansPreprocessor(TextPreprocessor):
    """Packs questions with windows of their passages, for `AlbertForSpans`.

    Args:
        max_query_length: int or None. Tokens after which a question is truncated; None is 64, or
            a third of `sequence_length` if that is less.
        doc_stride: int. Tokens between the starts of two windows of a passage. A passage that is
            too long takes several windows, which overlap.
        **kwargs: `tokenizer`, `sequence_length`, `pads_to` and others; see `AlbertPreprocessor`.

    Call arguments:
        inputs: A tuple of "context" and "question", string [B]; or a dict of these.

    Returns:
        dict of int32 [W, S], W the number of windows: "input_ids", "input_mask", "segment_ids" and
        "p_mask", 1 where an answer can neither start nor end, 0 at [CLS].
    """

    fields = ("context", "question")
    uses_windows = True
    _make_tokenizer = staticmethod(aligning_tokenizer)

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 384,
        pads_to: str = "sequence_length",
        max_query_length: int | None = None,
        doc_stride: int = 128,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, pads_to, **kwargs)
        self.max_query_length = max_query_length or min(64, sequence_length // 3)
        self.doc_stride = doc_stride
        check_room(sequence_length, self.max_query_length, self.tokenizer.num_special)

    def rows(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> dict[str, tf.Tensor]:
        windows = self.windows(columns["context"], columns["question"], is_fixed)
        packed = windows.packed | {"p_mask": answer_mask(windows.packed)}
        targets = dict(targets or {})
        if "sample_weight" in targets:
            packed["sample_weight"] = tf.gather(targets["sample_weight"], windows.rows)
        if "begin" not in targets:
            return packed
        # Of characters to before `end`, the first and the last token that overlap them.
        aligned, begin, end = windows.aligned, targets["begin"], targets["end"]
        begin, end = (tf.cast(edge, tf.int64)[:, None] for edge in (begin, end))
        first = tf.reduce_sum(tf.cast(aligned.ends <= begin, tf.int64), axis=1)
        last = tf.reduce_sum(tf.cast(aligned.starts < end, tf.int64), axis=1) - 1
        rows, has_answer = windows.rows, (first <= last) & (end[:, 0] > begin[:, 0])
        first, last = (tf.gather(each, rows) for each in (first, last))
        stops = windows.offsets + windows.lengths
        is_inside = tf.gather(has_answer, rows) & (first >= windows.offsets) & (last < stops)
        shift = windows.begins - windows.offsets
        starts, ends = (tf.where(is_inside, each + shift, 0) for each in (first, last))
        return packed | {
            "start_positions": tf.cast(starts, tf.int32),
            "end_positions": tf.cast(ends, tf.int32),
            "is_impossible": tf.cast(ends == 0, tf.int32),
        }

    def windows(self, context: Any, question: Any, is_fixed: bool = False) -> "Windows":
        """Returns the Windows of passages and questions, string [B]."""
        packer = self._packers[is_fixed]
        context_bytes = LONG_TEXT_FACTOR * packer.max_bytes
        whole_context, context = context, readable(context, context_bytes)
        aligned = self.graph_tokenizer.align(context)
        whole_query = self.ids(question)
        query = whole_query[:, : self.max_query_length]
        dropped = num_tokens_of(question, whole_query, packer.max_bytes) - query.row_lengths()
        dropped += num_tokens_of(whole_context, aligned.ids, context_bytes)
        dropped -= aligned.ids.row_lengths()
        budget = packer.max_seq_length - packer.num_special - query.row_lengths()
        totals = aligned.ids.row_lengths()
        rows, offsets, lengths = lay_out_windows(totals, budget, self.doc_stride)
        query_lengths = tf.gather(query.row_lengths(), rows)
        packed = packer.join(
            row_slices(query, 0, query_lengths, rows),
            row_slices(aligned.ids, offsets, lengths, rows),
        )
        begins = query_lengths + 1 + packer.pair_separators
        return Windows(context, aligned, rows, offsets, lengths, begins, packed, dropped)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "max_query_length": self.max_query_length,
            "doc_stride": self.doc_stride,
        }


class Windows:
    """Windows of B passages, W of them.

    Attributes:
        context: string [B]. What is read of the passages.
        aligned: AlignedTexts of them.
        rows, offsets, lengths: int64 [W]. The passage of each window, in ascending order, its first
            token, and the number of tokens.
        begins: int64 [W]. Position of the first token of the passage in the row.
        packed: dict of int32 [W, S].
        dropped: int64 [B]. Tokens of both texts that are in no window.
    """

    def __init__(
        self,
        context: tf.Tensor,
        aligned: AlignedTexts,
        rows: tf.Tensor,
        offsets: tf.Tensor,
        lengths: tf.Tensor,
        begins: tf.Tensor,
        packed: dict[str, tf.Tensor],
        dropped: tf.Tensor,
    ):
        self.context, self.aligned, self.packed, self.dropped = context, aligned, packed, dropped
        self.rows, self.offsets, self.lengths, self.begins = rows, offsets, lengths, begins

    def may_start(self) -> tf.Tensor:
        """Returns the positions where no other window shows more context: bool [W, S]."""
        width = tf.shape(self.packed["input_ids"])[1]
        positions = tf.range(width, dtype=tf.int64) - self.begins[:, None]
        firsts = tf.gather(self.aligned.ids.row_starts(), self.rows) + self.offsets
        return max_context(positions, self.lengths, firsts)


class SpanSearch:
    """Finds the best spans in windows from the outputs of a model.

    Args:
        outputs_of: callable. Takes rows, with "p_mask", and returns the outputs of the model.
        can_be_none: Whether a question may have no answer.
        n_best: Number of candidates.
        max_answer_length: Largest number of tokens of an answer.
    """

    def __init__(
        self,
        outputs_of: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
        can_be_none: bool,
        n_best: int,
        max_answer_length: int,
    ):
        self._outputs_of, self._has_null = outputs_of, can_be_none
        self._n_best, self._longest = n_best, max_answer_length
        # Twice as many, since a text counts once however often it is in the context.
        self._num_spans = 2 * n_best

    def answers(self, windows: Windows, null_threshold: float = 0.0) -> dict[str, tf.Tensor]:
        """Finds the answers in all windows of the part of the context that is read.

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
        (scores, starts, ends, start_scores, end_scores), null_logits = self._best(
            windows.packed, windows.may_start(), begins, begins + windows.lengths
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
        if null_logits is not None:
            null_scores = tf.math.unsorted_segment_min(null_logits, rows, batch)
            has_window = windows.aligned.ids.row_lengths() > 0
            null_scores = tf.where(has_window, null_scores, _NO_WINDOW)
            is_answer &= null_scores < null_threshold
            answers["null_score"] = null_scores
        answers["answer"] = tf.where(is_answer, texts[:, 0], "")
        for name, edges in (("start", begin), ("end", end)):
            answers[name] = tf.where(is_answer, edges[:, 0], -1)
        return answers

    def _best(self, packed, *more):
        """Returns the best K spans of each window, computed for a few windows at a time.

        These are a list of score (float64, `_IMPOSSIBLE` for no span), start and end position
        (int64), start and end score (float32), all [W, K]; and null logits [W] or None.
        """
        types = (tf.float64, tf.int64, tf.int64, tf.float32, tf.float32)
        specs = [tf.TensorSpec([None, None], dtype) for dtype in types]
        specs += [tf.TensorSpec([None], tf.float32)] * self._has_null

        def best(packed, *more):
            outputs = self._outputs_of(packed | {"p_mask": answer_mask(packed)})
            return self._best_of_outputs(outputs, *more)

        found = compute_in_parts(best, specs, packed, *more)
        return found[: len(types)], found[-1] if self._has_null else None

    def _best_of_outputs(self, outputs, may_start, begins, stops):
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


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForSpans(AlbertForTexts):
    """Finds where an answer starts and ends, and whether there is one.

    Args:
        config: AlbertConfig.
        can_be_none: bool. Whether a question may have no answer, as in SQuAD 2.0.
        n_best: int. Number of candidates for an answer.
        max_answer_length: int. Largest number of tokens of an answer.
        **kwargs: As in `AlbertForTexts`; `head_dropout` is used only for `can_be_none`. The
            `thresholds` may have "null_threshold", the `null_score` from which a question is left
            unanswered, 0 by default. `finetune` fits it to development examples.

    Call arguments:
        inputs: A tuple of contexts and questions, string [B]; a dict of "context" and "question";
            or the features of `AlbertSpansPreprocessor`, int [W, S].

    Returns:
        For texts a dict, see `SpanSearch.answers`; for features the same as `outputs_of`:
        "start_logits" and "end_logits", float32 [W, S], as of `SpansHead`, which deviates from
        google-research/albert; for `can_be_none` the outputs of `SpansOrNoneHead`.

    Example:
        model = AlbertForSpans.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions), ["at noon"])
        model.answer((passages, questions))[0].text
    """

    preprocessor_class = AlbertSpansPreprocessor
    usual_length = 384
    takes_losses = False

    def __init__(
        self,
        config: AlbertConfig,
        can_be_none: bool = False,
        n_best: int = 20,
        max_answer_length: int = 30,
        **kwargs: Any,
    ):
        super().__init__(config, **kwargs)
        self.can_be_none = can_be_none
        self.n_best, self.max_answer_length = n_best, max_answer_length
        if can_be_none:
            self.head = SpansOrNoneHead(config, self.head_dropout, **self._of_head)
        else:
            self.head = SpansHead(config, **self._of_head)

    def _outputs(self, inputs, training, dropout_seed):
        hidden = self._sequence(inputs, training, dropout_seed)
        return self.head(hidden, inputs, dropout_seed, training=training)

    def predictions(self, outputs: Tensors) -> Any:
        return outputs

    def predictions_of_texts(self, columns: Mapping[str, Any], training: bool) -> Any:
        windows = self.preprocessor.windows(
            columns["context"], columns["question"], self.needs_fixed_length
        )
        search = SpanSearch(
            lambda rows: self.outputs_of(rows, training),
            self.can_be_none,
            self.n_best,
            self.max_answer_length,
        )
        return search.answers(windows, self.thresholds.get("null_threshold", 0.0))

    def compute_losses(self, outputs: Tensors, features: Tensors) -> Losses:
        """Returns the mean of the cross-entropies of start and end, and 1 where both are right.

        With `can_be_none` it is half the sum of the cross-entropies of start, end (after the right
        start) and "no answer".
        """
        # Log-probabilities are logits too, their sum of exponentials being 1.
        scores = "log_probs" if self.can_be_none else "logits"
        starts, starts_right = of_classes(outputs[f"start_{scores}"], features["start_positions"])
        ends, ends_right = of_classes(outputs[f"end_{scores}"], features["end_positions"])
        losses, is_right = (starts + ends) / 2, starts_right * ends_right
        if self.can_be_none:
            labels = tf.cast(features["is_impossible"], tf.float32)
            logits = tf.cast(outputs["null_logits"], tf.float32)
            losses += tf.nn.sigmoid_cross_entropy_with_logits(labels, logits) / 2
        return losses, is_right

    def targets(self, labels: Any, columns: Mapping[str, Any]) -> dict[str, np.ndarray]:
        contexts, answers = plain(columns["context"]), _answers_of(labels)
        edges = [
            self._edges_of(context, answer, f"Label {at + 1} of {len(answers)}")
            for at, (context, answer) in enumerate(zip(contexts, answers, strict=False))
        ]
        begin, end = np.array(edges, np.int64).reshape(-1, 2).T
        return {"begin": begin, "end": end}

    def _edges_of(self, context, answer, where):
        """Returns the first character of an answer and one more than its last; 0, 0 for none."""
        text = answer["text"] if isinstance(answer, dict) else answer
        start = answer.get("answer_start") if isinstance(answer, dict) else None
        text = text[0] if isinstance(text, list) and text else text
        start = start[0] if isinstance(start, list) and start else start
        if not text:
            if not self.can_be_none:
                raise InputError(f"{where}: every question must have an answer. Received: none.")
            return 0, 0
        if not isinstance(text, str):
            raise InputError(f"{where}: an answer must be a text. Received: {answer!r}.")
        start = context.find(text) if start is None else int(start)
        if start < 0 or context[start : start + len(text)] != text or not text.strip():
            raise InputError(f"{where}: an answer must be in its passage. Received: {answer!r}.")
        start += len(text) - len(text.lstrip())
        return start, start + len(text.strip())

    def get_config(self) -> dict[str, Any]:
        usual = {"n_best": 20, "max_answer_length": 30}
        changed = {
            name: getattr(self, name) for name, at in usual.items() if getattr(self, name) != at
        }
        return super().get_config() | {"can_be_none": self.can_be_none} | changed


def _answers_of(labels):
    """Returns one answer of each question: a text, a dict of SQuAD, or None."""
    labels = plain(labels)
    if isinstance(labels, Mapping):  # columns, as a data set has them
        columns = {name: plain(values) for name, values in labels.items()}
        labels = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    return [one[0] if isinstance(one, list) and one else one or None for one in labels]


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
