"""How plain text becomes words.

The rules are expressions that Python and the RE2 of a graph read alike, so that both find the same
words.
"""

import functools
import re
import unicodedata
from collections.abc import Sequence

from data_pipeline.config import AT_WHITE_SPACE, WordSplit
from data_pipeline.text.letters import UNSPACED_SCRIPTS
from data_pipeline.tokenizers.cleanup import character_ranges, characters_of
from data_pipeline.tokenizers.wordpiece import IDEOGRAPHS

#: A text that begins with this character is split at white space only: it consists of given words.
GIVEN_WORDS = "\x1f"  # "unit separator", itself white space
#: How each rule splits a text, for people.
SPLITS: dict[WordSplit, str] = {
    "characters": "into characters",
    "punctuation": "at white space, with punctuation and Chinese characters apart from words",
    AT_WHITE_SPACE: "at white space",
}
#: Signs that stay in a word if letters or digits are on both sides.
_INNER = re.escape(".,:'’-_/@&")
#: Sentences that are looked at, at regular distances.
_MOST_SENTENCES = 10_000


@functools.cache
def word_pattern(rule: WordSplit) -> str:
    """Returns the expression that finds each word of a text, for `re` and RE2."""
    space = characters_of(character_ranges(str.isspace))
    sign = characters_of(character_ranges(_is_sign))
    # Marks belong to what they stand on, and a joiner to the emoji before it.
    marks = f"[{characters_of(character_ranges(_is_mark))}]*"
    ideographs = characters_of(IDEOGRAPHS)
    letters = f"[^{space}{sign}{ideographs}]+"
    return {
        "characters": f"[^{space}]{marks}",
        "punctuation": f"{letters}(?:[{_INNER}]{letters})*|[{sign}{ideographs}]{marks}",
        AT_WHITE_SPACE: f"[^{space}]+",
    }[rule]


def split_words(text: str, rule: WordSplit) -> list[str]:
    """Returns the words of a plain text."""
    if rule == AT_WHITE_SPACE or text.startswith(GIVEN_WORDS):
        return text.split()
    return re.findall(word_pattern(rule), text)


def rule_of(sentences: Sequence[Sequence[str]]) -> tuple[WordSplit, float]:
    """Returns the rule by which sentences were split into words, and of how many this is true.

    It is the rule that finds the words of most sentences again in their text; with it comes their
    share, 0 to 1. If no rule finds those of any, it is white space alone.
    """
    sentences = sentences[:: 1 + len(sentences) // _MOST_SENTENCES]
    texts = [_text_of(words) for words in sentences]
    # Of equals the first: a sentence without punctuation says nothing about it.
    rules: tuple[WordSplit, ...] = ("characters", AT_WHITE_SPACE, "punctuation")
    found = {
        rule: sum(
            split_words(text, rule) == list(words)
            for text, words in zip(texts, sentences, strict=True)
        )
        for rule in rules
    }
    best = max(found, key=found.__getitem__)
    return (best if found[best] else AT_WHITE_SPACE), found[best] / max(len(sentences), 1)


@functools.cache
def _unwritten_space():
    """Returns the expression for spaces that texts do not have between their words."""
    sign = characters_of(character_ranges(_is_sign))
    return re.compile(f"(?<=[{UNSPACED_SCRIPTS}]) (?=[{UNSPACED_SCRIPTS}])| (?=[{sign}]+(?: |$))")


def _text_of(words):
    """Returns words as a text that contains them, whatever may be around its punctuation."""
    return _unwritten_space().sub("", " ".join(words))


def _is_sign(character):
    return unicodedata.category(character)[0] in "PS"


def _is_mark(character):
    return unicodedata.category(character)[0] == "M" or character == "\u200d"
