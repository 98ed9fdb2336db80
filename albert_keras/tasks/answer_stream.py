"""Answers to a stream of inputs, some at a time, and what was truncated of them."""

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from albert_keras.tasks.task import Task

#: Inputs that are answered at a time.
MOST_AT_A_TIME = 256

logger = logging.getLogger(__name__)


class Answering(Protocol):
    """FinetunedModels, or the Predictor of an export."""

    task: Task | None

    def answers(self, examples: list) -> list:
        """Answers examples of the task."""


class Answered(NamedTuple):
    """An input with its answer."""

    columns: dict[str, Any]  # of the input, by name
    example: Any
    answer: Any


def answer_stream(
    models: Answering, inputs: Iterable[Sequence[tuple[dict[str, Any], Any]]]
) -> Iterator[Answered]:
    """Answers inputs as they arrive, and logs at the end how many of them were truncated.

    Args:
        inputs: Lists of inputs, each with its columns and its example. A list is answered before
            the next one is read; so memory does not grow with their number.
    """
    truncated = Truncation()
    for several in inputs:
        for part in _parts(several):
            answers = models.answers([example for _, example in part])
            truncated.add(answers)
            for (columns, example), answer in zip(part, answers, strict=True):
                yield Answered(columns, example, answer)
    truncated.warn()


class Truncation:
    """Counts the inputs that a model did not read completely."""

    def __init__(self):
        self._answers = self._truncated = self._tokens = self._words = 0

    def add(self, answers: Sequence):
        """Counts answers with the field `dropped_tokens` or `dropped_words`."""
        for answer in answers:
            tokens = getattr(answer, "dropped_tokens", 0)
            words = getattr(answer, "dropped_words", 0)
            self._answers += 1
            self._truncated += tokens + words > 0
            self._tokens += tokens
            self._words += words

    def warn(self):
        """Logs a line if any input was truncated."""
        if self._truncated:
            number, noun = (self._tokens, "tokens") if self._tokens else (self._words, "words")
            logger.warning(
                "Truncated inputs: %s of %s. Unread %s: %s, see `dropped_%s` of each answer.",
                f"{self._truncated:,}",
                f"{self._answers:,}",
                noun,
                f"{number:,}",
                noun,
            )


def _parts(inputs):
    """Yields at most `MOST_AT_A_TIME` inputs at a time, all with the same number of options."""
    groups = itertools.groupby(inputs, lambda one: len(getattr(one[1], "options", ())))
    for _, group in groups:
        while part := list(itertools.islice(group, MOST_AT_A_TIME)):
            yield part
