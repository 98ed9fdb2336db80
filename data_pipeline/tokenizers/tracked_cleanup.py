"""`clean_up` that tells of each character it writes which ones it has read."""

import functools
import itertools
import re
import sys
import unicodedata

import numpy as np

_WORD = re.compile(r"\S+")


def clean_up_tracked(
    text: str, lower_case: bool = True, strip_accents: bool = True
) -> tuple[str, np.ndarray, np.ndarray]:
    """Returns the text as `clean_up` does, and where each of its characters comes from.

    Args:
        text: str. Any text.
        lower_case: bool. As in `clean_up`.
        strip_accents: bool. As in `clean_up`.

    Returns:
        str, the text of N characters that `clean_up` returns; int64 [N], the first character of
        the given text that each comes from; int64 [N], one more than the last. A deleted mark
        belongs to the character before it; a letter and marks that are composed come from all of
        their characters.
    """
    characters, starts, ends = _with_single_spaces(text)
    if not text.isascii():
        track = _track_decomposed if strip_accents else _track_composed
        characters, starts, ends = track("".join(characters), starts, ends)
    if lower_case:
        lengths = [len(character.lower()) for character in characters]  # İ becomes two
        starts, ends = np.repeat(starts, lengths), np.repeat(ends, lengths)
        # All at once: how a capital sigma is lowered depends on its neighbours.
        characters = "".join(characters).lower()
    return "".join(characters), np.array(starts, np.int64), np.array(ends, np.int64)


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


def _track_decomposed(text, starts, ends):
    """NFKD puts marks in order, which does not matter here: they all go."""
    written, new_starts, new_ends = [], [], []
    for character, start, end in zip(text, starts, ends, strict=True):
        kept = _without_marks(character)
        if not kept and written:
            new_ends[-1] = end
        for one in kept:
            written.append(one)
            new_starts.append(start)
            new_ends.append(end)
    return written, new_starts, new_ends


def _track_composed(text, starts, ends):
    """NFKC acts on clusters, one by one."""
    written, new_starts, new_ends = [], [], []
    begins = [
        place
        for place, character in enumerate(text)
        if character.isascii() or place == 0 or _opens_cluster(character)
    ]
    for begin, stop in itertools.pairwise([*begins, len(text)]):
        composed = unicodedata.normalize("NFKC", text[begin:stop])
        written.extend(composed)
        new_starts.extend([starts[begin]] * len(composed))
        new_ends.extend([ends[stop - 1]] * len(composed))
    return written, new_starts, new_ends


@functools.lru_cache(1 << 16)
def _without_marks(character):
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(one for one in decomposed if not unicodedata.combining(one))


@functools.lru_cache(1 << 16)
def _opens_cluster(character):
    """Tells whether composition never joins the character with those before it."""
    first = unicodedata.normalize("NFKD", character)[0]
    return not unicodedata.combining(first) and first not in _joining_letters()


@functools.cache
def _joining_letters():
    """Characters that are no marks, yet join with the one before: Indic vowel signs, jamo."""
    joining = set()
    for character in map(chr, range(sys.maxunicode + 1)):
        decomposed = unicodedata.normalize("NFD", character)
        joining.update(one for one in decomposed[1:] if not unicodedata.combining(one))
    return frozenset(joining)
