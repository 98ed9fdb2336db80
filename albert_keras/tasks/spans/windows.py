"""Questions and passages as windows of fixed length: `[CLS] question [SEP] passage [SEP]`.

A passage that is too long for one window is split into several that overlap. Every position of a
window can be mapped back to characters of the raw passage.
"""

import logging

import numpy as np

from albert_keras.models.spans import check_room
from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.pair_features import EncodedPairs, PairFeatures
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import align_texts
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)


def lay_out_windows(total: int, budget: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first token and the number of tokens of each of K windows over a passage.

    Of the `total` tokens of the passage, `budget` fit into a window. The starts of two windows are
    at most `stride` apart, and the last window reaches the end; K is 0 if `total` is 0.
    """
    step = min(budget, stride)
    count = 1 + max(0, -(-(total - budget) // step)) if total else 0
    offsets = np.arange(count) * step
    return offsets, np.minimum(total - offsets, budget)


def max_context(offsets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns for each token of a passage the window that shows most of its context, int64 [T].

    The first of several equally good windows; arguments as returned by `lay_out_windows`.

    Source:
        `_check_is_max_context` in google-research/albert, `squad_utils.py`.
    """
    if not len(offsets):
        return np.zeros(0, np.int64)
    tokens = np.arange(offsets[-1] + lengths[-1])
    best, best_score = np.zeros(len(tokens), np.int64), np.full(len(tokens), -np.inf)
    for window, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
        inside = slice(offset, offset + length)
        left, right = tokens[:length], tokens[:length][::-1]
        score = np.minimum(left, right) + 0.01 * length
        better = score > best_score[inside]
        best[inside][better], best_score[inside][better] = window, score[better]
    return best


class SpanFeatures(PairFeatures):
    """W windows: pairs of a question and a part of its passage, in the order of the questions.

    A question has several windows if its passage is long, and none if its passage is empty.

    Args:
        pairs: W of them.
        max_seq_length: S.
        places: int64 [W, 3]. Of each window the number of its question, the number of its first
            token in the whole passage, and its number among the windows of the question, from 0.
        passages: list of AlignedPieces. One per question; questions may share one.
        best_windows: list of int64 [T], see `max_context`. One per question.
        spans: int32 [W, 2]. First and last position of the answer; 0 in a window that does not
            contain all of it. None unless for training.

    Attributes:
        example_indices: int64 [W]. The number of each window's question, from 0.
        passage_starts, passage_lengths: int64 [W]. Position of the first token of the passage, and
            tokens of the passage in the window.
    """

    def __init__(
        self, pairs, tokenizer, max_seq_length, places, passages, best_windows, spans=None
    ):
        super().__init__(pairs, tokenizer, max_seq_length)
        self.example_indices, self._offsets, self._windows = places.T
        self.passage_starts = pairs.lengths[:, 0] + 1 + tokenizer.pair_separators
        self.passage_lengths = pairs.lengths[:, 1]
        self.passages, self._best_windows, self.spans = passages, best_windows, spans

    def batch(self, rows, length=None):
        batch = super().batch(rows, length)
        positions = np.arange(batch["input_ids"].shape[1])
        starts = self.passage_starts[rows, None]
        is_passage = (positions >= starts) & (positions < starts + self.passage_lengths[rows, None])
        # The passage, or [CLS] for no answer.
        batch["p_mask"] = (~is_passage & (positions > 0)).astype(np.int32)
        if self.spans is not None:
            starts, ends = self.spans[rows].T
            batch |= {"start_positions": starts, "end_positions": ends}
            batch["is_impossible"] = (ends == 0).astype(np.int32)
        return batch

    def shows_most(self, row: int, positions: np.ndarray) -> np.ndarray:
        """Returns whether positions are in the passage, and no other window shows more context."""
        places = positions - self.passage_starts[row]
        inside = (places >= 0) & (places < self.passage_lengths[row])
        best = self._best_windows[self.example_indices[row]]
        tokens = np.where(inside, places + self._offsets[row], 0)
        return inside & (best[tokens] == self._windows[row])

    def characters_at(self, row: int, start: int, end: int, context: str) -> tuple[int, int]:
        """Returns the characters of a span in the raw passage: the first, one more than the last.

        White space around the span does not count. `start` and `end` are the first and the last
        position in the window `row`, both of the passage.
        """
        passage = self.passages[self.example_indices[row]]
        shift = int(self._offsets[row]) - int(self.passage_starts[row])
        first, last = int(passage.starts[start + shift]), int(passage.ends[end + shift])
        text = context[first:last].rstrip()
        first += len(text) - len(text.lstrip())
        return first, first + len(text.lstrip())


def span_features(
    examples: list[QuestionExample],
    tokenizer: Tokenizer,
    max_seq_length: int,
    doc_stride: int,
    max_query_length: int,
    training: bool = False,
) -> SpanFeatures:
    """Splits passages into windows.

    Questions about an empty passage have no window, and are logged. Only for training are answers
    located and read: windows without the whole answer have [CLS] as their answer, in version 1 too.
    See TaskConfig for the lengths.

    Raises:
        InputError: If there is no question or all passages are empty; or in training, if a question
            that is not impossible does not have exactly one answer, or an answer has no tokens.

    Source:
        `convert_examples_to_features` in google-research/albert, `squad_utils.py`; with offsets
        that are tracked instead of guessed by the longest common subsequence.
    """
    if not examples:
        raise InputError("There must be at least one question. Received: none.")
    check_room(max_seq_length, max_query_length, tokenizer.num_special)
    contexts = list(dict.fromkeys(example.context for example in examples))
    aligned = dict(zip(contexts, align_texts(tokenizer, contexts), strict=True))
    begins, laid_out = {}, {}
    tokens, count = [], 0  # of passages and questions, and how many they are
    rows, passages, best_windows, dropped = [], [], [], []
    for number, example in enumerate(examples):
        passage = aligned[example.context]
        if example.context not in begins:
            begins[example.context] = count
            tokens.append(passage.ids)
            count += len(passage.ids)
        whole_query = tokenizer.encode(example.question)
        query = whole_query[:max_query_length]
        dropped.append(len(whole_query) - len(query))
        layout = len(passage.ids), max_seq_length - len(query) - tokenizer.num_special
        if layout not in laid_out:
            windows = lay_out_windows(*layout, doc_stride)
            laid_out[layout] = windows, max_context(*windows)
        (offsets, lengths), best = laid_out[layout]
        passages.append(passage)
        best_windows.append(best)
        answer = _answer_tokens(example, passage) if training else None
        begin = len(query) + 1 + tokenizer.pair_separators
        for window, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
            span = _positions_of(answer, offset, length, begin)
            of_pair = count, begins[example.context] + offset, len(query), length
            rows.append((*of_pair, number, offset, window, *span))
        tokens.append(query)
        count += len(query)
    columns = np.array(rows, np.int64).reshape(-1, 9)
    ids = np.concatenate([np.asarray(part, np.int32) for part in tokens])
    pairs = EncodedPairs(ids, columns[:, :2], columns[:, 2:4])
    spans = columns[:, 7:].astype(np.int32) if training else None
    features = SpanFeatures(
        pairs, tokenizer, max_seq_length, columns[:, 4:7], passages, best_windows, spans
    )
    features.dropped_tokens = np.array(dropped, np.int64)
    _check_windows(examples, features)
    return features


def _check_windows(examples, features):
    have_windows = set(features.example_indices.tolist())
    empty = [example.id for at, example in enumerate(examples) if at not in have_windows]
    if len(empty) == len(examples):
        raise InputError(
            "At least one passage must contain text that remains after clean-up. "
            f"Received: {len(examples)} questions, all about empty passages."
        )
    if empty:
        logger.warning(
            "%d of %d questions are about an empty passage and have no window; the first is %r.",
            len(empty), len(examples), empty[0],
        )  # fmt: skip


def _answer_tokens(example, passage):
    if example.is_impossible:
        return None
    if len(example.answers) != 1:
        raise InputError(
            f"For training, question {example.id!r} must have exactly one answer. "
            f"Received: {len(example.answers)}."
        )
    (answer,) = example.answers
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    tokens = passage.covering(start, answer.start + len(answer.text.rstrip()))
    if tokens is None:
        raise InputError(
            f"The answer to question {example.id!r} must contain text that remains after "
            f"clean-up. Received: {answer.text!r}."
        )
    return tokens


def _positions_of(answer, offset, length, passage_start):
    """Returns first and last position of an answer in a window; [CLS] unless all is in it."""
    if answer is None or answer[0] < offset or answer[1] >= offset + length:
        return 0, 0
    return answer[0] - offset + passage_start, answer[1] - offset + passage_start
