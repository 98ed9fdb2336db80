"""Spans of characters in a text → its words with tags."""

import itertools
from typing import Any, NamedTuple

from albert_keras.report import shortened_value
from albert_keras.tasks.tables.rows import RowError
from albert_keras.tasks.task_config import Offsets
from data_pipeline.config import WordSplit
from data_pipeline.tokenizers.words import split_words

_ADVICE = "`task.offsets` says how characters are counted: characters, utf16 or inclusive."


class Span(NamedTuple):
    """A span as it is in a file."""

    begin: int
    end: int  # one more than its last character, or that character if ends are inclusive
    name: str
    text: str | None = None

    def __str__(self):
        text = "" if self.text is None else f"{shortened_value(self.text)} "
        return f"{text}{self.name} from {self.begin} to {self.end}"


def span_of(given: Any) -> Span:
    """Returns the span of `[0, 3, "PER"]`, or of an object with `start`, `end` and `label`.

    An object may have the `text` of the span. RowError for anything else.
    """
    values = given
    if isinstance(given, dict):
        values = [given.get(name) for name in ("start", "end", "label", "text")]
    if isinstance(values, list) and len(values) in (3, 4):
        begin, end, name, text = (*values, None)[:4]
        is_place = type(begin) is int and type(end) is int
        if is_place and isinstance(name, str) and name and isinstance(text, str | None):
            return Span(begin, end, name, text)
    raise RowError(
        'must have spans such as [0, 3, "PER"], or objects with `start`, `end` and `label`. '
        f"Received: {shortened_value(given)}."
    )


def tagged_words(
    text: str, spans: list[Span], split: WordSplit, offsets: Offsets
) -> tuple[list[str], list[str]]:
    """Returns the words of a text and their tags: B, I and O.

    Args:
        text: str.
        spans: list of Span.
        split: How a text becomes words, see `split_words`.
        offsets: How spans count characters, see `TaskConfig`.

    Raises:
        RowError: If a span is not in the text, has another text, cuts a word, contains none, or
            overlaps another one; it names the span.
    """
    places = _word_places(text, split)
    tags = ["O"] * len(places)
    found = [(*_characters(text, span, offsets), span) for span in spans]
    found.sort(key=lambda one: one[:2])
    for (_, end, first), (begin, _, second) in itertools.pairwise(found):
        if begin < end:
            raise RowError(
                "must have spans that do not overlap, as a word has one tag. "
                f"Received: {first}, and {second}."
            )
    for begin, end, span in found:
        prefix = "B"
        for number, (word_begin, word_end) in enumerate(places):
            if word_end <= begin or end <= word_begin:
                continue
            if word_begin < begin or end < word_end:
                raise RowError(
                    f"must have spans that begin and end with words. It has {span}, which cuts "
                    f"`{text[word_begin:word_end]}`. `task.word_split` names how a text is split. "
                    f"{_ADVICE}"
                )
            tags[number], prefix = f"{prefix}-{span.name}", "I"
        if prefix == "B":
            raise RowError(f"must have a word in each span. It has {span}. {_ADVICE}")
    return [text[begin:end] for begin, end in places], tags


def _word_places(text, split):
    """Returns the first character of each word of a text, and one more than its last."""
    places, end = [], 0
    for word in split_words(text, split):
        begin = text.index(word, end)
        end = begin + len(word)
        places.append((begin, end))
    return places


def _characters(text, span, offsets):
    """Returns the first character of a span and one more than its last; RowError if it has none."""
    begin, end = span.begin, span.end
    if offsets == "inclusive":
        end += 1
    if offsets == "utf16":
        widths = (1 + (character > "\uffff") for character in text)
        places = {at: place for place, at in enumerate(itertools.accumulate(widths, initial=0))}
        begin, end = places.get(begin, -1), places.get(end, -1)
    if not 0 <= begin < end <= len(text):
        raise RowError(
            f"must have spans inside its text of {len(text)} characters. It has {span}. {_ADVICE}"
        )
    if span.text is not None and text[begin:end] != span.text:
        raise RowError(
            f"must have spans with the text that is there. It has {span}, where the text has "
            f"{shortened_value(text[begin:end])}. {_ADVICE}"
        )
    return begin, end
