"""Splits text into words for WordPiece: at white space, punctuation and ideographs.

`graph_tokenization` does the same in TensorFlow, with the character classes defined here.

Source: `BasicTokenizer` in google-research/albert, `tokenization.py`.
"""

import functools
import re
import unicodedata

from data_pipeline.tokenizers.cleanup import character_ranges, characters_of, run_of

#: Blocks of ideographs; each ideograph is a word. Kana and Hangul are not among them.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

_BREAKS = "\t\n\r"  # white space, though their category is Cc
_REPLACEMENT = "\ufffd"


class BasicTokenizer:
    """Cleans up text and splits it into words.

    With `strip_accents`, it decomposes text (NFD) and deletes characters of category Mn. The
    original does so if it lower-cases letters.
    """

    def __init__(self, lower_case: bool, strip_accents: bool):
        self._lower_case = lower_case
        self._strip_accents = strip_accents

    def words(self, text: str) -> list[str]:
        """Returns the words of a text; an ideograph or punctuation mark is a word of its own."""
        return [word for chunk in self.chunks(text) for word in self.words_of_chunk(chunk)]

    def chunks(self, text: str) -> list[str]:
        """Does the steps that need the whole text; returns words that may still have accents.

        The remaining step, `words_of_chunk`, needs one chunk only, so its results can be cached.
        """
        if not text.isprintable() or _REPLACEMENT in text:  # rare, and quickly decided
            text = run_of(is_dropped).sub("", text)
        if self._lower_case:  # a sigma changes at the end of a word
            text = text.lower()
        if text.isascii():
            return _chunks_up_to(0x7F).findall(text)
        is_beyond = _BEYOND_16_BITS.search(text) is not None
        return _chunks_up_to(0x10FFFF if is_beyond else 0xFFFF).findall(text)

    def words_of_chunk(self, chunk: str) -> list[str]:
        """Returns the words of a chunk: usually one, but none for accents, three for `a≠b`."""
        if not self._strip_accents or chunk.isascii():
            return [chunk]
        chunk = run_of(is_mark).sub("", unicodedata.normalize("NFD", chunk))
        return _chunks_up_to(0x10FFFF).findall(chunk)


def is_dropped(character: str) -> bool:
    """Returns whether a character is deleted: U+FFFD, controls, formats and surrogates."""
    is_control = unicodedata.category(character) in ("Cc", "Cf", "Cs")
    return character == _REPLACEMENT or (is_control and character not in _BREAKS)


def is_space(character: str) -> bool:
    return character in _BREAKS or unicodedata.category(character) in ("Zs", "Zl", "Zp")


def is_punctuation(character: str) -> bool:
    """In ASCII, that is all but letters, digits, space and controls, such as `$` and `^`."""
    is_ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return is_ascii_sign or unicodedata.category(character).startswith("P")


def is_mark(character: str) -> bool:
    return unicodedata.category(character) == "Mn"


@functools.cache
def _chunks_up_to(last):
    """Returns the expression for texts without characters beyond the last one.

    Python's `re` looks up a character in a table, except for ranges beyond 16 bits, with which it
    compares every character that is not in the table.
    """
    single = [*character_ranges(is_punctuation), *IDEOGRAPHS]
    single = [pair for pair in single if pair[0] <= last]
    spaces = [pair for pair in character_ranges(is_space) if pair[0] <= last]
    return re.compile(f"[^{characters_of([*single, *spaces])}]+|[{characters_of(single)}]")


_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")
