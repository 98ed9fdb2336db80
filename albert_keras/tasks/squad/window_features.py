"""Turns questions about passages into windows of fixed length: `[CLS] query [SEP] passage [SEP]`.

A passage that is too long for one window is cut into several that overlap. Every place of a window
leads back to characters of the raw passage.
"""

import dataclasses
import logging
from collections.abc import Iterable

import numpy as np

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.squad.windows import SquadWindowConfig, lay_out_windows, max_context
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedPieces, TextAligner
from data_pipeline.tokenizers.tokenization import Tokenizer

_logger = logging.getLogger(__name__)

_FIRST_UNIQUE_ID = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class SquadFeatures:
    """W windows of S places, in the order of the questions.

    Attributes:
        unique_ids: int64 [W]. Counted from 1,000,000,000.
        example_indices: int32 [W]. The number of each window's question, from 0.
        input_ids: int32 [W, S].
        query_lengths: int32 [W]. Pieces of the question.
        passage_lengths: int32 [W]. Pieces of the passage in this window.
        passage_offsets: int32 [W]. The first of them, as a number in the whole passage.
        is_max_context: bool [W, S] or None. Whether a place is of the passage, and no other window
            shows more of what stands around it. None if made for training, which has no use for it.
        passages: tuple of AlignedPieces, one per question. Questions of one passage share it.
        starts, ends: int32 [W] or None. First and last place of the answer; 0 in a window without
            the whole of it. None unless made for training.
        is_impossible: int32 [W] or None. 1 where `starts` and `ends` are 0, else 0.
    """

    unique_ids: np.ndarray
    example_indices: np.ndarray
    input_ids: np.ndarray
    query_lengths: np.ndarray
    passage_lengths: np.ndarray
    passage_offsets: np.ndarray
    is_max_context: np.ndarray | None
    passages: tuple[AlignedPieces, ...]
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    is_impossible: np.ndarray | None = None

    def __len__(self):
        return len(self.unique_ids)

    def inputs(self, rows=slice(None), length=None) -> dict[str, np.ndarray]:
        """Returns what a model is given for some windows.

        Args:
            rows: slice, or int or bool array. Which windows; all by default.
            length: int or None. The first places only; None is all, S.

        Returns:
            dict of int32 [B, length]: "input_ids"; "input_mask", 1 up to the last [SEP];
            "segment_ids", 0 up to the first [SEP] and in padding, 1 from there to the last;
            "p_mask", 0 where an answer may be ([CLS] for none, and the passage), else 1.
        """
        input_ids = self.input_ids[rows, :length]
        places = np.arange(input_ids.shape[1])
        passage_start = self.query_lengths[rows, None] + 2
        last_sep = passage_start + self.passage_lengths[rows, None]
        is_text = places <= last_sep
        is_second = (places >= passage_start) & is_text
        may_be_answer = (is_second & (places < last_sep)) | (places == 0)
        return {
            "input_ids": input_ids,
            "input_mask": is_text.astype(np.int32),
            "segment_ids": is_second.astype(np.int32),
            "p_mask": (~may_be_answer).astype(np.int32),
        }

    def targets(self, rows=slice(None)) -> dict[str, np.ndarray]:
        """Returns what a model should find: int32 [B] "start_positions", "end_positions" and
        "is_impossible".

        Raises:
            ValueError: If the features were not made for training.
        """
        if self.starts is None:
            raise ValueError("These features have no targets: make them with `training=True`.")
        return {
            "start_positions": self.starts[rows],
            "end_positions": self.ends[rows],
            "is_impossible": self.is_impossible[rows],
        }

    def characters_at(self, row: int, start: int, end: int, context: str) -> tuple[int, int]:
        """Returns where the raw text of some places of a window is, without space around it.

        Args:
            row: int. The window.
            start, end: int. First and last place, both of the passage.
            context: str. The raw passage.

        Returns:
            (int, int), the first character in the passage, and one more than the last.
        """
        passage = self.passages[self.example_indices[row]]
        shift = int(self.passage_offsets[row]) - int(self.query_lengths[row]) - 2
        first, last = int(passage.starts[start + shift]), int(passage.ends[end + shift])
        text = context[first:last].rstrip()
        first += len(text) - len(text.lstrip())
        return first, first + len(text.lstrip())

    def text_at(self, row: int, start: int, end: int, context: str) -> str:
        """Returns the raw text itself; arguments as in `characters_at`."""
        return context[slice(*self.characters_at(row, start, end, context))]


def make_features(
    examples: Iterable[QuestionExample],
    tokenizer: Tokenizer,
    config: SquadWindowConfig | None = None,
    training: bool = False,
) -> SquadFeatures:
    """Cuts passages into windows, each with its question in front.

    Windows without the whole answer stay, with [CLS] as their answer, in version 1 too.

    Args:
        examples: iterable of QuestionExample.
        tokenizer: Tokenizer.
        config: SquadWindowConfig or None. None is the defaults.
        training: bool. Whether to place the answers; `is_impossible` and `answers` of the
            examples are read for nothing else.

    Returns:
        SquadFeatures. Questions about an empty passage have no window, and are logged.

    Raises:
        InputError: If there is no question; if the vocabulary is none of SentencePiece; or in
            training, a question that is not impossible has not exactly one answer, or one that no
            piece comes from.

    Source:
        `convert_examples_to_features` in google-research/albert, `squad_utils.py`; with offsets
        tracked instead of guessed by the longest common subsequence.
    """
    config, examples = config or SquadWindowConfig(), list(examples)
    aligner = TextAligner(tokenizer)
    aligned, laid_out, passages, rows = {}, {}, [], []
    for number, example in enumerate(examples):
        if example.context not in aligned:
            aligned[example.context] = aligner.align(example.context)
        passage = aligned[example.context]
        passages.append(passage)
        answer = _answer_pieces(example, passage) if training else None
        query = tokenizer.encode(example.question)[: config.max_query_length]
        budget = config.max_seq_length - len(query) - 3
        layout = len(passage.ids), budget
        if layout not in laid_out:
            windows = lay_out_windows(*layout, config.doc_stride)
            laid_out[layout] = windows, max_context(*windows)
        (offsets, lengths), best = laid_out[layout]
        for window, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
            mine = None if training else best[offset : offset + length] == window
            start, end = _placed(answer, offset, length, len(query) + 2)
            rows.append((number, query, passage.ids, offset, length, mine, start, end))
    if not passages:
        raise InputError("There should be at least one question. Received: none.")
    features = _filled(rows, tuple(passages), tokenizer, config.max_seq_length, training)
    log_empty_passages(examples, features)
    return features


def log_empty_passages(examples, features):
    """Logs the questions that have no window, if there are any."""
    have_windows = set(features.example_indices.tolist())
    empty = [example.id for at, example in enumerate(examples) if at not in have_windows]
    if empty:
        _logger.warning(
            "%d of %d questions are about an empty passage and have no window; the first is %r.",
            len(empty), len(examples), empty[0],
        )  # fmt: skip


def _answer_pieces(example, passage):
    if example.is_impossible:
        return None
    if len(example.answers) != 1:
        raise InputError(
            f"For training, question {example.id!r} should have exactly one answer. "
            f"Received: {len(example.answers)}."
        )
    (answer,) = example.answers
    start = answer.start + len(answer.text) - len(answer.text.lstrip())
    pieces = passage.covering(start, answer.start + len(answer.text.rstrip()))
    if pieces is None:
        raise InputError(
            f"The answer to question {example.id!r} should leave something after clean-up. "
            f"Received: {answer.text!r}."
        )
    return pieces


def _placed(answer, offset, length, passage_start):
    """Returns the places of an answer in a window; [CLS] if it is not all there."""
    if answer is None or answer[0] < offset or answer[1] >= offset + length:
        return 0, 0
    return answer[0] - offset + passage_start, answer[1] - offset + passage_start


def _filled(rows, passages, tokenizer, seq_length, training):
    count = len(rows)
    input_ids = np.full((count, seq_length), tokenizer.pad_id, np.int32)
    is_max_context = None if training else np.zeros((count, seq_length), bool)
    numbers = np.zeros((6, count), np.int32)
    for row, (number, query, ids, offset, length, mine, start, end) in enumerate(rows):
        begin = len(query) + 2
        input_ids[row, 0] = tokenizer.cls_id
        input_ids[row, 1 : begin - 1] = query
        input_ids[row, begin - 1] = input_ids[row, begin + length] = tokenizer.sep_id
        input_ids[row, begin : begin + length] = ids[offset : offset + length]
        if not training:
            is_max_context[row, begin : begin + length] = mine
        numbers[:, row] = number, len(query), length, offset, start, end
    example_indices, query_lengths, passage_lengths, passage_offsets, starts, ends = numbers
    return SquadFeatures(
        _FIRST_UNIQUE_ID + np.arange(count, dtype=np.int64),
        example_indices,
        input_ids,
        query_lengths,
        passage_lengths,
        passage_offsets,
        is_max_context,
        passages,
        starts if training else None,
        ends if training else None,
        (ends == 0).astype(np.int32) if training else None,
    )
