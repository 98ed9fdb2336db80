"""How plain text becomes words.

The rules are expressions that Python and the RE2 of a graph read alike, so that both find the same
words: each is replaced, and at the end words are what white space separates.
"""

import functools
import re
import unicodedata

from data_pipeline.config import WordSplit
from data_pipeline.tokenizers.cleanup import character_ranges, characters_of
from data_pipeline.tokenizers.wordpiece import IDEOGRAPHS

#: A text that begins with this character is split at white space only: it consists of given words.
GIVEN_WORDS = "\x1f"  # "unit separator", itself white space
#: Signs that stay in a word if letters or digits are on both sides.
_INNER = re.escape(".,:'’-_/@&")
#: Stands before a word that is written together with the one before it; itself white space.
_JOINT = "\x1e"
#: What English writes together with the word before it, as in the Penn Treebank.
_CONTRACTED = "(?i:n['’]t|['’](?:s|m|d|re|ve|ll))"


@functools.cache
def word_steps(rule: WordSplit) -> tuple[tuple[str, str], ...]:
    """Returns what is replaced in a text until there is white space between its words.

    Expressions and replacements, which `re` and RE2 read alike, one after the other.
    """
    space = characters_of(character_ranges(str.isspace))
    sign = characters_of(character_ranges(_is_sign))
    # Marks belong to what they stand on, and a joiner to the emoji before it.
    marks = f"[{characters_of(character_ranges(_is_mark))}]*"
    ideographs = characters_of(IDEOGRAPHS)
    letter, others = f"[^{space}{sign}{ideographs}]", f"[{space}{sign}{ideographs}]"
    word = f"{letter}+(?:[{_INNER}]{letter}+)*"
    words = f"{word}|[{sign}{ideographs}]{marks}"
    steps = {
        "white_space": (),
        "characters": ((f"([^{space}]{marks})", r"\1 "),),
        "punctuation": ((f"({words})", r"\1 "),),
        "elisions": (
            (f"({letter}['’])({letter})", rf"\1{_JOINT}\2"),
            (f"({word}['’]{_JOINT}|{words})", r"\1 "),
            (f"((?i:aujourd)['’]){_JOINT} ((?i:hui))", r"\1\2"),  # one word of today's French
        ),
        "contractions": (
            (f"({letter})({_CONTRACTED})({others}|$)", rf"\1{_JOINT}\2\3"),
            (f"({_JOINT}{letter}?['’]{letter}+|{words})", r"\1 "),
        ),
    }
    return steps[rule]


def split_words(text: str, rule: WordSplit) -> list[str]:
    """Returns the words of a plain text."""
    if not text.startswith(GIVEN_WORDS):
        for expression, replacement in word_steps(rule):
            text = re.sub(expression, replacement, text)
    return text.split()


def _is_sign(character):
    return unicodedata.category(character)[0] in "PS"


def _is_mark(character):
    return unicodedata.category(character)[0] == "M" or character == "\u200d"
