"""Examples as the readers of task files return them: one record type per layout. Plain Python."""

import functools
import hashlib
import json
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple


class TextExample(NamedTuple):
    """One text or a pair of texts, to be classified or scored."""

    id: str  # as in the file; otherwise the number of the row
    first: str
    second: str | None = None
    #: The name of a class, a score, several of them, or None if unknown.
    label: str | float | tuple[str, ...] | tuple[float, ...] | None = None


class Answer(NamedTuple):
    """A correct answer to a question about a passage."""

    text: str
    start: int  # its first character in the passage


class QuestionExample(NamedTuple):
    """A question about a passage."""

    id: str
    question: str
    context: str  # the passage, as in the file
    answers: tuple[Answer, ...] = ()  # empty if there is none, or none is known
    is_impossible: bool | None = None  # whether the passage has no answer; None in version 1


class ChoiceExample(NamedTuple):
    """A passage, a question and several options."""

    id: str
    context: str
    question: str
    options: tuple[str, ...]
    label: int | None = None  # the number of the right option
    level: str = ""  # "middle" or "high" in RACE


class TaggedExample(NamedTuple):
    """A sentence in words, each with a tag; or a plain text, which a model splits into words."""

    id: str
    words: tuple[str, ...]  # () of a plain text
    tags: tuple[str, ...] | None = None  # None if unknown
    text: str | None = None


def row_of(example: Any) -> tuple[str, ...]:
    """Returns the texts that a model reads of an example, and that tell it from others."""
    if isinstance(example, TaggedExample):
        return example.words
    if isinstance(example, QuestionExample | ChoiceExample):
        return (example.question, example.context)
    return (example.first,) if example.second is None else (example.first, example.second)


def digest_of_texts(texts: Iterable[str]) -> int:
    """Returns 64 bits of a hash of texts; two texts differ from one with their content."""
    digest = hashlib.sha256(json.dumps(list(texts)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


@functools.lru_cache(maxsize=1024)  # the questions of a passage follow one another
def normalised(text: str) -> str:
    """Returns a text in NFKC, casefolded, with single spaces between its words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", text).split())


def text_problem(text: Any, may_be_blank: bool = False) -> str | None:
    """Returns why a value is no text that a model can read, or None; continues "`text` ..."."""
    if not isinstance(text, str):
        return f"must be a text. Received: {text!r:.80}."
    if not text.strip() and not may_be_blank:
        return "must be a text. It is blank."
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        return "must be Unicode. It has half a surrogate pair."
    return None
