"""What is read from the files of a task, one record type per kind of task. Plain Python."""

from typing import NamedTuple


class TextExample(NamedTuple):
    """One text or a pair, to be classified or scored.

    Attributes:
        id: str. As in the file; else its number there.
        first: str.
        second: str or None.
        label: str, float or None. A class by name, a score, or None where there is none.
    """

    id: str
    first: str
    second: str | None = None
    label: str | float | None = None


class Answer(NamedTuple):
    """An answer as somebody gave it: `text` str, and `start` int, its first character."""

    text: str
    start: int


class QuestionExample(NamedTuple):
    """A question about a passage.

    Attributes:
        id: str.
        question: str.
        context: str. The passage, as in the file.
        answers: tuple of Answer. Empty where there is none, or none is known.
        is_impossible: bool or None. Whether the passage holds no answer; None in version 1.
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
        label: int or None. Which option is right.
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
        tags: tuple of str, or None where they are to be found.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
