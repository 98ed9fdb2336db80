"""Spans of characters in a text → its words with tags, whatever a program counted as characters.

A file may say where a span is and what its text is. Both are compared, as in SQuAD: offsets are
only believed if they agree with the text.
"""

import contextlib
import itertools
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, NamedTuple

from albert_keras.report import shortened_value
from albert_keras.tasks.tables.rows import RowError, checked
from data_pipeline.config import WordSplit
from data_pipeline.text.letters import UNSPACED_CHARACTER
from data_pipeline.tokenizers.words import split_words

#: Names of the parts of a span that is an object: begin, end, name, and perhaps its text.
_KEYS = (
    ("start", "start_offset", "begin"),
    ("end", "end_offset"),
    ("label", "labels"),
    ("text", "word", "surface", "value", "mention", "quote"),
)
_CHARACTERS = "characters"
_JOINER = "\u200d"
_CHARACTER = re.compile(r"\r?\n|.", re.DOTALL)  # a line end is one
#: What programs count → how much a character counts, and whether a line end is CRLF in the text of
#: the program: "" for as it is. Browsers count UTF-16, and read CRLF as one.
_UNITS = {
    _CHARACTERS: lambda character: 1,
    "UTF-16 code units": lambda character: 1 + (character > "\uffff"),
    "bytes of UTF-8": lambda character: len(character.encode("utf-8", "surrogatepass")),
    "characters together with their marks": lambda character: int(not _is_mark(character)),
}
_LINE_ENDS = {"": "", " and each line end as one": "\n", " and each line end as two": "\r\n"}
#: Ends that are that of the last character instead of one more.
_INCLUDED = " and each end as the last one"
_WAYS = [(unit, ends, "") for ends in _LINE_ENDS for unit in _UNITS]
_WAYS += [(unit, "", _INCLUDED) for unit in _UNITS]
#: Texts of a file in which the ways to count are tried.
_MOST_TRIED = 1_000


class Span(NamedTuple):
    """A span as it is in a file."""

    begin: int
    end: int  # one more than the last, or the last
    name: str
    text: str | None = None

    def __str__(self):
        text = "" if self.text is None else f"{shortened_value(self.text)} "
        return f"{text}{self.name} from {self.begin} to {self.end}"


class Texts:
    """The texts of a file with their spans, counted as most of them suit their texts.

    Args:
        texts: Texts with spans, each read by `spans_of`.
    """

    def __init__(self, texts: Iterable[tuple[str, list[Span]]]):
        self.cut: list[str] = []  # spans that begin or end inside a word, for people
        self.first, self.count, self._way, self._fits = "", 0, _WAYS[0], (0, 0)
        tried = list(itertools.islice(texts, _MOST_TRIED))
        fits = [sum(_fit(*one, way) for one in tried) for way in _WAYS]
        # Some spans end one character before a word does; where ends are inclusive, nearly all.
        usual = max(fits[: -len(_UNITS)])
        best = fits.index(max(fits) if max(fits) > 2 * usual else usual)  # of equals the first
        count = sum(len(spans) for _, spans in tried)
        if fits[best] > max(fits[0], count / 2):  # fewer suit by chance
            self._way, self._fits = _WAYS[best], (fits[best], fits[0])

    def words(self, place: str, text: str, spans: list[Span], split: WordSplit) -> tuple:
        """Returns the words of a text, which end where a span does, and their tags: B, I and O.

        `place` says where the text is in its file. RowError, which names the span, if it is not in
        the text, has another text, contains no word, or overlaps another.
        """
        places = _places(text, self._way)
        found = {(*_characters(text, span, places, self._way), span) for span in spans}
        found = sorted(found, key=lambda one: (*one[:2], one[2].name))
        for (_, end, first), (begin, _, second) in itertools.pairwise(found):
            if begin < end:
                raise RowError(
                    f"must have spans in its text that do not overlap, as a word has one tag. "
                    f"Received: {first}, and {second}."
                )
        borders = [0, *(border for begin, end, _ in found for border in (begin, end)), len(text)]
        words, tags = [], []
        for number, (begin, end) in enumerate(itertools.pairwise(borders)):
            inside = split_words(text[begin:end], split)
            span = found[number // 2][2] if number % 2 else None
            words += inside
            if span is None:
                tags += ["O"] * len(inside)
                continue
            tags += [f"{'I' if at else 'B'}-{span.name}" for at in range(len(inside))]
            if not inside:
                raise RowError(f"must have a word in the span {span}, before its end.")
            self.first = self.first or f"{text[begin:end]!r}: {span}"
            if _is_cut(text, begin, end):
                whole = _around(text, begin, end)
                self.cut.append(f"{text[begin:end]!r} of {whole!r} in {place} ({span})")
        self.count += len(found)
        return words, tags

    def remarks(self) -> list[str]:
        """Returns what is unusual about the spans of all texts, for people."""
        remarks, (suit, others) = [], self._fits
        if self._way != _WAYS[0]:
            remarks.append(
                f"spans count {''.join(self._way)}, not {_CHARACTERS}, and are read so: {suit:,} "
                f"of them suit their texts, {others:,} if they counted {_CHARACTERS}"
            )
        if self.cut:
            remarks.append(
                f"{len(self.cut):,} of {self.count:,} spans begin or end inside a word and cut it; "
                f"the first is {self.cut[0]}. Plain text is never cut so: let spans begin and end "
                "with words"
            )
        return remarks


def spans_of(spans: Any) -> list[Span]:
    """Returns spans in the forms of several programs; RowError for any other."""
    if isinstance(spans, dict) and all(isinstance(one, dict) for one in spans.values()):
        names = checked(dict[str, dict[str, list[list[int]]]], spans)  # as in CLUENER
        texts = [(name, *item) for name, texts in names.items() for item in texts.items()]
        spans = [[*place, name, text] for name, text, places in texts for place in places]
    return [_span(span) for span in (spans if isinstance(spans, list | tuple) else [spans])]


def _span(given):
    span = given
    if isinstance(span, dict):
        span = [next((span[name] for name in some if name in span), None) for some in _KEYS]
    if isinstance(span, list) and len(span) in (3, 4):
        begin, end, name, *text = span
        name = name[0] if isinstance(name, list) and len(name) == 1 else name
        if type(begin) is type(end) is int and begin <= end and isinstance(name, str) and name:
            return Span(begin, end, name, *(one for one in text if isinstance(one, str)))
    raise RowError(
        f'must have spans such as [0, 4, "PER"], or with `start`, `end` and `label`. '
        f"Received: {shortened_value(given)}."
    )


def _characters(text, span, places, way):
    """Returns the first character of a span and one more than its last; RowError if it has none."""
    begin, end = places.get(span.begin), places.get(span.end + bool(way[2]))
    if begin is None or end is None:
        raise RowError(f"must have spans inside its text of {len(text)} characters. It has {span}.")
    if span.text is not None and text[begin:end].split() != span.text.split():
        raise RowError(
            f"must have spans with the text that is there. It has {span}, where the text has "
            f"{shortened_value(text[begin:end])}."
        )
    return begin, end


def _fit(text, spans, way):
    """Counts the spans that suit a text: that have its characters, or begin and end with words."""
    places, count = _places(text, way), 0
    for span in spans:
        with contextlib.suppress(RowError):
            begin, end = _characters(text, span, places, way)
            inside = text[begin:end]
            is_whole = inside == inside.strip() and not _is_cut(text, begin, end)
            count += span.text is not None or is_whole
    return count


def _places(text, way):
    """Returns the characters at which spans may begin and end, by what a program counts there."""
    if way[:2] == _WAYS[0][:2] or text.isascii() and "\n" not in text:
        return dict(enumerate(range(len(text) + 1)))
    length, line_end, places, at = _UNITS[way[0]], _LINE_ENDS[way[1]], {0: 0}, 0
    for match in _CHARACTER.finditer(text):
        is_line_end = line_end and match[0].endswith("\n")
        at += len(line_end) if is_line_end else sum(map(length, match[0]))
        places[at] = match.end()
    return places


def _is_mark(character):
    """Returns whether a character is shown together with the one before it."""
    is_tone = "\U0001f3fb" <= character <= "\U0001f3ff"  # of the skin of an emoji
    return unicodedata.category(character)[0] == "M" or character == _JOINER or is_tone


def _is_cut(text, begin, end):
    return _is_inside(text, begin) or _is_inside(text, end)


def _is_inside(text, at):
    """Returns whether the characters before and after a place belong to one word."""
    return 0 < at < len(text) and all(map(_is_of_word, text[at - 1 : at + 1]))


def _is_of_word(character):
    is_letter = character.isalnum() or unicodedata.category(character)[0] == "M"
    return is_letter and not UNSPACED_CHARACTER.match(character)


def _around(text: str, begin: int, end: int) -> str:
    """Returns a part of a text with the whole words that it begins and ends in."""
    while _is_inside(text, begin):
        begin -= 1
    while _is_inside(text, end):
        end += 1
    return text[begin:end]
