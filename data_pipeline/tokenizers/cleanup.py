"""The clean-up that text goes through before SentencePiece sees it.

Vocabularies trained here contain the same rules inside their model (see `normalization_rules`).
The released ones do not: for them `sentencepiece_model` calls `clean_up`, and `graph_tokenization`
repeats it in TensorFlow with the character classes defined here.
"""

import functools
import re
import sys
import unicodedata


def clean_up(text: str, lower_case: bool = True, strip_accents: bool = True) -> str:
    """Returns the text as the ALBERT vocabularies expect it.

    White space is trimmed and every run of it becomes one space, compatibility characters are
    resolved (`ﬁ` to `fi`, full width to ASCII), accents are removed, letters are lowered (`lower`,
    not case folding: `ß` stays).

    Without `strip_accents` the text is composed (NFKC) instead of decomposed and stripped: that is
    what German (`ü`), Japanese (`が`) or Hindi (virama) need, where a mark makes another letter.

    Args:
        text: str. Any text.
        lower_case: bool. Whether to lower letters.
        strip_accents: bool. Whether to delete every character whose canonical combining class is
            not zero, after decomposition. The original always does.

    Returns:
        str. With `strip_accents`, Hangul is left as single jamo: SentencePiece's own
        normalisation puts the syllables together again.

    Source:
        `preprocess_text` in google-research/albert, `tokenization.py`.
    """
    text = " ".join(text.split())
    if not text.isascii():  # ASCII has no accents and no compatibility characters
        if strip_accents:
            text = _combining_characters().sub("", unicodedata.normalize("NFKD", text))
        else:
            text = unicodedata.normalize("NFKC", text)
    return text.lower() if lower_case else text


@functools.cache
def white_space_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points that count as white space, as (first, last) pairs."""
    return character_ranges(str.isspace)


@functools.cache
def combining_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points with a combining class other than zero, as (first, last) pairs.

    Not the same as category Mn: many vowel signs are Mn with class zero, and they stay.
    """
    return character_ranges(unicodedata.combining)


@functools.cache
def _combining_characters():
    ranges = "".join(f"{chr(first)}-{chr(last)}" for first, last in combining_ranges())
    return re.compile(f"[{ranges}]+")


def character_ranges(belongs) -> tuple[tuple[int, int], ...]:
    """Returns the code points of a class, as (first, last) pairs.

    Args:
        belongs: callable. Takes a character, tells whether it is one of them.
    """
    ranges = []
    for code_point in range(sys.maxunicode + 1):
        if belongs(chr(code_point)):
            if ranges and ranges[-1][1] == code_point - 1:
                ranges[-1][1] = code_point
            else:
                ranges.append([code_point, code_point])
    return tuple((first, last) for first, last in ranges)
