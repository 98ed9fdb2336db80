"""Cuts text into the words that WordPiece takes apart: at white space, punctuation and ideographs.

`wordpiece_graph` does the same in TensorFlow, with the character classes from here.

Source: `BasicTokenizer` in google-research/albert, `tokenization.py`.
"""

import functools
import re
import unicodedata

from data_pipeline.tokenizers.cleanup import character_ranges

#: Blocks of ideographs, each of which is a word. Kana and Hangul are not among them.
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
#: Half characters, which are not UTF-8. They are replaced elsewhere, and what replaces is dropped.
_SURROGATES = (0xD800, 0xDFFF)


class BasicTokenizer:
    """Cleans text up and cuts it into words.

    Args:
        lower_case: bool. Whether to lower letters.
        strip_accents: bool. Whether to decompose (NFD) and delete what is of category Mn. The
            original does so if it lowers letters.
    """

    def __init__(self, lower_case: bool, strip_accents: bool):
        self._lower_case = lower_case
        self._strip_accents = strip_accents

    def words(self, text: str) -> list[str]:
        """Returns the words of a text; an ideograph or punctuation mark is one by itself."""
        return [word for chunk in self.chunks(text) for word in self.words_of_chunk(chunk)]

    def chunks(self, text: str) -> list[str]:
        """Does what takes all of a text; the rest depends on single chunks, so it can be kept.

        Args:
            text: str. Any text.

        Returns:
            list of str. Chunks for `words_of_chunk`: words that may still have accents.
        """
        if not text.isprintable() or _REPLACEMENT in text:  # seldom, and told in no time
            text = _dropped().sub("", text)
        if self._lower_case:  # a sigma is another one at the end of a word
            text = text.lower()
        if text.isascii():
            return _chunks_up_to(0x7F).findall(text)
        is_beyond = _BEYOND_16_BITS.search(text) is not None
        return _chunks_up_to(0x10FFFF if is_beyond else 0xFFFF).findall(text)

    def words_of_chunk(self, chunk: str) -> list[str]:
        """Returns the words of a chunk: mostly one, but none of accents alone, three of `a≠b`."""
        if not self._strip_accents or chunk.isascii():
            return [chunk]
        chunk = _marks().sub("", unicodedata.normalize("NFD", chunk))
        return _chunks_up_to(0x10FFFF).findall(chunk)


@functools.cache
def dropped_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points that are deleted, as (first, last) pairs.

    They are NUL, U+FFFD, controls and formats.
    """
    return character_ranges(
        lambda character: (
            character == _REPLACEMENT
            or (unicodedata.category(character) in ("Cc", "Cf") and character not in _BREAKS)
        )
    )


@functools.cache
def space_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points between words that are no words, as (first, last) pairs."""
    return character_ranges(
        lambda character: (
            character in _BREAKS or unicodedata.category(character) in ("Zs", "Zl", "Zp")
        )
    )


@functools.cache
def punctuation_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points of punctuation, as (first, last) pairs.

    In ASCII all that is no letter, digit, space or control counts, such as `$` and `^`.
    """
    return character_ranges(
        lambda character: (
            unicodedata.category(character).startswith("P")
            or ("!" <= character <= "~" and not character.isalnum())
        )
    )


@functools.cache
def mark_ranges() -> tuple[tuple[int, int], ...]:
    """Returns the code points of category Mn, as (first, last) pairs."""
    return character_ranges(lambda character: unicodedata.category(character) == "Mn")


def _characters(*ranges):
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


@functools.cache
def _dropped():
    return re.compile(f"[{_characters(*dropped_ranges(), _SURROGATES)}]+")


@functools.cache
def _marks():
    return re.compile(f"[{_characters(*mark_ranges())}]+")


@functools.cache
def _chunks_up_to(last):
    """Returns the expression for texts without characters beyond the last one.

    Python looks a character up in a table, except those beyond 16 bits: it compares each character
    that is not in the table with all ranges of them.
    """
    alone = [pair for pair in (*punctuation_ranges(), *IDEOGRAPHS) if pair[0] <= last]
    spaces = [pair for pair in space_ranges() if pair[0] <= last]
    return re.compile(f"[^{_characters(*alone, *spaces)}]+|[{_characters(*alone)}]")


_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")
