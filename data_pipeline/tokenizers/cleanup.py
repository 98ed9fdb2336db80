"""The clean-up that text goes through before SentencePiece sees it.

Vocabularies trained here contain the same rules inside their model (see `normalization_rules`).
The released ones do not: for them `sentencepiece_model` calls `clean_up`, and `graph_tokenization`
repeats it in TensorFlow with the character classes defined here. `clean_up_tracked` also returns
the origin of each character, for `offsets`.
"""

import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable

import numpy as np

_WORD = re.compile(r"\S+")


def clean_up(text: str, lower_case: bool = True, strip_accents: bool = True) -> str:
    """Returns the text as the ALBERT vocabularies expect it.

    White space is trimmed and every run of it becomes one space, compatibility characters are
    resolved (`ﬁ` to `fi`, full width to ASCII), accents are removed, letters are lower-cased
    (`lower`, not case folding: `ß` stays).

    With `strip_accents`, as always in the original, every character whose canonical combining
    class is not zero is deleted after decomposition. Hangul stays decomposed into jamo:
    SentencePiece's own normalisation composes the syllables again. Otherwise the text is composed
    (NFKC). German (`ü`), Japanese (`が`) and Hindi (virama) need that, as their marks change the
    letter.

    Source: `preprocess_text` in google-research/albert, `tokenization.py`.
    """
    text = " ".join(text.split())
    if not text.isascii():  # ASCII has no accents and no compatibility characters
        if strip_accents:
            # Not category Mn: many vowel signs are Mn with combining class zero, and they stay.
            text = run_of(unicodedata.combining).sub("", unicodedata.normalize("NFKD", text))
        else:
            text = unicodedata.normalize("NFKC", text)
    return text.lower() if lower_case else text


def clean_up_tracked(
    text: str, lower_case: bool = True, strip_accents: bool = True
) -> tuple[str, np.ndarray, np.ndarray]:
    """Returns the text of N characters that `clean_up` returns, and the origin of each.

    The origin is int64 [N], the first character of the given text that each comes from, and
    int64 [N], one more than the last. A deleted mark belongs to the character before it. A letter
    composed with marks comes from all of them.
    """
    characters, starts, ends = _with_single_spaces(text)
    if not text.isascii():
        characters, starts, ends = _track("".join(characters), starts, ends, strip_accents)
    if lower_case:
        lengths = [len(character.lower()) for character in characters]  # İ becomes two
        starts, ends = np.repeat(starts, lengths), np.repeat(ends, lengths)
        # In one call: the lower case of a capital sigma depends on its neighbours.
        characters = "".join(characters).lower()
    return "".join(characters), np.array(starts, np.int64), np.array(ends, np.int64)


@functools.cache
def character_ranges(belongs: Callable[[str], object]) -> tuple[tuple[int, int], ...]:
    """Returns the code points of the characters that belong to a class, as (first, last) pairs."""
    codes = np.array([code for code in range(sys.maxunicode + 1) if belongs(chr(code))])
    runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    return tuple((int(run[0]), int(run[-1])) for run in runs)


def character_class(ranges) -> str:
    """Returns code points, given as (first, last) pairs, as a character class of RE2."""
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges) + "]"


def characters_of(ranges) -> str:
    """Returns code points, given as (first, last) pairs, for a character class of Python's `re`."""
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


@functools.cache
def run_of(belongs: Callable[[str], object]) -> re.Pattern:
    """Returns the expression for one or more characters that belong to a class."""
    return re.compile(f"[{characters_of(character_ranges(belongs))}]+")


def _with_single_spaces(text):
    characters, starts, ends = [], [], []
    for word in _WORD.finditer(text):
        if characters:
            characters.append(" ")
            starts.append(ends[-1])
            ends.append(word.start())
        characters.extend(word[0])
        starts.extend(range(word.start(), word.end()))
        ends.extend(range(word.start() + 1, word.end() + 1))
    return characters, starts, ends


def _track(text, starts, ends, strip_accents):
    """Cleans up characters one by one, or clusters that NFKC never joins with their neighbours."""
    edges = [
        index
        for index, character in enumerate(text)
        if strip_accents or character.isascii() or index == 0 or starts_cluster(character)
    ]
    clean = _without_marks if strip_accents else functools.partial(unicodedata.normalize, "NFKC")
    written, new_starts, new_ends = [], [], []
    for begin, stop in itertools.pairwise([*edges, len(text)]):
        letters = clean(text[begin:stop])
        if not letters and written:
            new_ends[-1] = ends[stop - 1]
        written.extend(letters)
        new_starts.extend([starts[begin]] * len(letters))
        new_ends.extend([ends[stop - 1]] * len(letters))
    return written, new_starts, new_ends


@functools.lru_cache(1 << 16)
def _without_marks(character):
    # One character at a time is enough: the order of marks is irrelevant, as all are deleted.
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(one for one in decomposed if not unicodedata.combining(one))


@functools.lru_cache(1 << 16)
def starts_cluster(character: str) -> bool:
    """Returns whether composition never joins the character with those before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return not unicodedata.combining(first) and first not in _joining_letters()


@functools.cache
def _joining_letters():
    """Returns the Indic vowel signs and jamo: no marks, yet they join with the letter before."""
    joining = set()
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposed = unicodedata.normalize("NFD", character)
        joining.update(one for one in decomposed[1:] if not unicodedata.combining(one))
    return frozenset(joining)
