"""Examples as the readers of task files return them: one record type per layout. Plain Python."""

from typing import NamedTuple


class TextExample(NamedTuple):
    """One text or a pair of texts, to be classified or scored.

    Attributes:
        id: str. As in the file; otherwise the number of the row.
        first: str.
        second: str or None.
        label: str, float or None. The name of a class, a score, or None if unknown.
    """

    id: str
    first: str
    second: str | None = None
    label: str | float | None = None


class Answer(NamedTuple):
    """A correct answer: `text` str, and `start` int, its first character in the passage."""

    text: str
    start: int


class QuestionExample(NamedTuple):
    """A question about a passage.

    Attributes:
        id: str.
        question: str.
        context: str. The passage, as in the file.
        answers: tuple of Answer. Empty if there is none, or none is known.
        is_impossible: bool or None. Whether the passage has no answer; None in version 1.
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...] = ()
    is_impossible: bool | None = None


class ChoiceExample(NamedTuple):
    """A passage, a question and several options.

    Attributes:
        id: str.
        context: str.
        question: str.
        options: tuple of str.
        label: int or None. The number of the right option.
        level: str. "middle" or "high" in RACE, else "".
    """

    id: str
    context: str
    question: str
    options: tuple[str, ...]
    label: int | None = None
    level: str = ""


class TaggedExample(NamedTuple):
    """A sentence in words, each with a tag.

    Attributes:
        id: str.
        words: tuple of str.
        tags: tuple of str, or None if unknown.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
