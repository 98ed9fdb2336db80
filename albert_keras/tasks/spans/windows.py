"""Questions and passages as windows of fixed length: `[CLS] question [SEP] passage [SEP]`.

A passage that is too long for one window is split into several that overlap. Every position of a
window can be mapped back to characters of the raw passage.
"""

import dataclasses
import logging
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedPieces, TextAligner
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)


class SquadWindowConfig(NamedTuple):
    """How passages are split into windows."""

    max_seq_length: int = 384  # length of a window in tokens, S
    doc_stride: int = 128  # tokens between the starts of two windows of a passage
    max_query_length: int = 64  # tokens after which a question is truncated

    def check_room(self, num_special: int):
        """Raises InputError if a question could leave no room for the passage.

        `num_special` is `Tokenizer.num_special`.
        """
        if self.max_seq_length <= self.max_query_length + num_special:
            raise InputError(
                f"`max_seq_length` must be more than `max_query_length` + {num_special}, the "
                "special tokens of this vocabulary. Received: "
                f"max_seq_length={self.max_seq_length}, max_query_length={self.max_query_length}."
            )


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


@dataclasses.dataclass(frozen=True)
class SpanFeatures(Features):
    """W windows of S positions, in the order of the questions.

    A question has several windows if its passage is long, and none if its passage is empty.
    """

    example_indices: np.ndarray  # int32 [W], the number of each window's question, from 0
    input_ids: np.ndarray  # int32 [W, S]
    passage_starts: np.ndarray  # int32 [W], position of the first token of the passage
    passage_lengths: np.ndarray  # int32 [W], tokens of the passage in this window
    passage_offsets: np.ndarray  # int32 [W], the first of them, as a number in the whole passage
    #: bool [W, S]. Whether a position belongs to the passage and no other window shows more of its
    #: context. None in features for training.
    is_max_context: np.ndarray | None
    passages: tuple[AlignedPieces, ...]  # one per question; questions may share one
    #: int32 [W]. First and last position of the answer; 0 in a window that does not contain all of
    #: it. None unless for training.
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    is_impossible: np.ndarray | None = None  # int32 [W], 1 where `starts` and `ends` are 0, else 0
    dropped_tokens: np.ndarray | None = None  # int64 [questions], beyond `max_query_length`

    @property
    def lengths(self):
        return self.passage_starts + self.passage_lengths + 1  # the last [SEP]

    @property
    def max_seq_length(self):
        return self.input_ids.shape[1]

    def batch(self, rows, length=None):
        length = self.checked_length(rows, length)
        positions = np.arange(length)
        passage_start = self.passage_starts[rows, None]
        last_sep = passage_start + self.passage_lengths[rows, None]
        is_text = positions <= last_sep
        is_second = (positions >= passage_start) & is_text
        # The passage, or [CLS] for no answer.
        may_be_answer = (is_second & (positions < last_sep)) | (positions == 0)
        batch = {
            "input_ids": self.input_ids[rows, :length],
            "input_mask": is_text.astype(np.int32),
            "segment_ids": is_second.astype(np.int32),
            "p_mask": (~may_be_answer).astype(np.int32),
        }
        if self.starts is not None:
            batch["start_positions"] = self.starts[rows]
            batch["end_positions"] = self.ends[rows]
            batch["is_impossible"] = self.is_impossible[rows]
        return batch

    def characters_at(self, row: int, start: int, end: int, context: str) -> tuple[int, int]:
        """Returns the characters of a span in the raw passage: the first, one more than the last.

        White space around the span does not count. `start` and `end` are the first and the last
        position in the window `row`, both of the passage.
        """
        passage = self.passages[self.example_indices[row]]
        shift = int(self.passage_offsets[row]) - int(self.passage_starts[row])
        first, last = int(passage.starts[start + shift]), int(passage.ends[end + shift])
        text = context[first:last].rstrip()
        first += len(text) - len(text.lstrip())
        return first, first + len(text.lstrip())


def span_features(
    examples: list[QuestionExample],
    tokenizer: Tokenizer,
    config: SquadWindowConfig,
    training: bool = False,
) -> SpanFeatures:
    """Splits passages into windows.

    Questions about an empty passage have no window, and are logged. Only for training are answers
    located and read: windows without the whole answer have [CLS] as their answer, in version 1 too.

    Raises:
        InputError: If there is no question or all passages are empty; or in training, if a question
            that is not impossible does not have exactly one answer, or an answer has no tokens.

    Source:
        `convert_examples_to_features` in google-research/albert, `squad_utils.py`; with offsets
        that are tracked instead of guessed by the longest common subsequence.
    """
    if not examples:
        raise InputError("There must be at least one question. Received: none.")

    config.check_room(tokenizer.num_special)
    features = _make_features(examples, tokenizer, config, training)
    have_windows = set(features.example_indices.tolist())
    empty = [example.id for at, example in enumerate(examples) if at not in have_windows]
    if empty:
        logger.warning(
            "%d of %d questions are about an empty passage and have no window; the first is %r.",
            len(empty), len(examples), empty[0],
        )  # fmt: skip
    if len(empty) == len(examples):
        raise InputError(
            "At least one passage must contain text that remains after clean-up. "
            f"Received: {len(examples)} questions, all about empty passages."
        )
    return features


def _make_features(examples, tokenizer, config, training):
    aligner = TextAligner(tokenizer)
    aligned, laid_out, passages, rows, dropped = {}, {}, [], [], []
    for number, example in enumerate(examples):
        if example.context not in aligned:
            aligned[example.context] = aligner.align(example.context)
        passage = aligned[example.context]
        passages.append(passage)
        answer = _answer_tokens(example, passage) if training else None
        whole_query = tokenizer.encode(example.question)
        query = whole_query[: config.max_query_length]
        dropped.append(len(whole_query) - len(query))
        layout = len(passage.ids), config.max_seq_length - len(query) - tokenizer.num_special
        if layout not in laid_out:
            windows = lay_out_windows(*layout, config.doc_stride)
            laid_out[layout] = windows, max_context(*windows)
        (offsets, lengths), best = laid_out[layout]
        for window, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
            is_best = None if training else best[offset : offset + length] == window
            begin = len(query) + 1 + tokenizer.pair_separators
            start, end = _positions_of(answer, offset, length, begin)
            rows.append((number, query, passage.ids, offset, length, is_best, start, end))
    features = _filled(rows, tuple(passages), tokenizer, config.max_seq_length, training)
    return dataclasses.replace(features, dropped_tokens=np.array(dropped, np.int64))


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


def _filled(rows, passages, tokenizer, seq_length, training):
    count = len(rows)
    input_ids = np.full((count, seq_length), tokenizer.pad_id, np.int32)
    is_max_context = None if training else np.zeros((count, seq_length), bool)
    numbers = np.zeros((6, count), np.int32)
    for row, (number, query, ids, offset, length, is_best, start, end) in enumerate(rows):
        begin = len(query) + 1 + tokenizer.pair_separators
        input_ids[row, 0] = tokenizer.cls_id
        input_ids[row, 1 : len(query) + 1] = query
        input_ids[row, len(query) + 1 : begin] = input_ids[row, begin + length] = tokenizer.sep_id
        input_ids[row, begin : begin + length] = ids[offset : offset + length]
        if not training:
            is_max_context[row, begin : begin + length] = is_best
        numbers[:, row] = number, begin, length, offset, start, end
    example_indices, passage_starts, passage_lengths, passage_offsets, starts, ends = numbers
    return SpanFeatures(
        example_indices,
        input_ids,
        passage_starts,
        passage_lengths,
        passage_offsets,
        is_max_context,
        passages,
        starts if training else None,
        ends if training else None,
        (ends == 0).astype(np.int32) if training else None,
    )
