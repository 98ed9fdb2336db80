"""The clean-up that text goes through before SentencePiece sees it.

Vocabularies trained here contain the same rules inside their model (see `normalization_rules`).
The released ones do not: for them `sentencepiece_model` calls `clean_up`, and `graph_tokenization`
repeats it in TensorFlow with the character classes defined here.
"""

import functools
import re
import sys
import unicodedata
from collections.abc import Callable

import numpy as np

#: Typographic marks, and plain ones of the same meaning that every vocabulary of ours has. New
#: vocabularies read the plain ones instead; to older ones the others may be unknown.
PLAIN_MARKS = dict(zip("‘’‚‛“”„‟—―‐‑−", "''''\"\"\"\"––---", strict=True))


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


@functools.cache
def character_ranges(belongs: Callable[[str], object]) -> tuple[tuple[int, int], ...]:
    """Returns the code points of the characters that belong to a class, as (first, last) pairs."""
    codes = np.array([code for code in range(sys.maxunicode + 1) if belongs(chr(code))])
    runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    return tuple((int(run[0]), int(run[-1])) for run in runs)


def character_class(ranges) -> str:
    """Returns code points, given as (first, last) pairs, as a character class of RE2."""
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges) + "]"


def class_of(belongs: Callable[[str], object]) -> str:
    """Returns the characters that belong to a class as a character class of RE2."""
    return character_class(character_ranges(belongs))


def characters_of(ranges) -> str:
    """Returns code points, given as (first, last) pairs, for a character class of Python's `re`."""
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


@functools.cache
def run_of(belongs: Callable[[str], object]) -> re.Pattern:
    """Returns the expression for one or more characters that belong to a class."""
    return re.compile(f"[{characters_of(character_ranges(belongs))}]+")


def continues_cluster(character: str) -> bool:
    """Returns whether composition may join the character with those before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return unicodedata.combining(first) > 0 or first in _joining_letters()


@functools.cache
def _joining_letters():
    """Returns the Indic vowel signs and jamo: no marks, yet they join with the letter before."""
    joining = set()
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposed = unicodedata.normalize("NFD", character)
        joining.update(one for one in decomposed[1:] if not unicodedata.combining(one))
    return frozenset(joining)
