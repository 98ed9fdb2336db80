"""How plain text becomes words.

The rules are expressions that Python and the RE2 of a graph read alike, so that both find the same
words: each is replaced, and at the end words are what white space separates.
"""

import functools
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from data_pipeline.config import AT_WHITE_SPACE, WordSplit
from data_pipeline.text.letters import UNSPACED_SCRIPTS
from data_pipeline.tokenizers.cleanup import character_ranges, characters_of
from data_pipeline.tokenizers.wordpiece import IDEOGRAPHS

#: A text that begins with this character is split at white space only: it consists of given words.
GIVEN_WORDS = "\x1f"  # "unit separator", itself white space
#: Signs that stay in a word if letters or digits are on both sides.
_INNER = re.escape(".,:'’-_/@&")
#: Stands before a word that is written together with the one before it; itself white space.
_JOINT = "\x1e"
#: The sign that joins words to one, as in Vietnamese, where a text has a space.
_JOINT_OF_WORDS = re.compile(r"(?<=[^\s\d_])_(?=[^\W\d_])")
#: What English writes together with the word before it, as in the Penn Treebank.
_CONTRACTED = "(?i:n['’]t|['’](?:s|m|d|re|ve|ll))"
#: Sentences that are looked at, at regular distances.
_MOST_SENTENCES = 2_000
#: A rule that finds less than this share of the words of training sentences is a warning.
_LEAST_FOUND = 0.9
#: How each rule splits a text, for people.
SPLITS: dict[WordSplit, str] = {
    "characters": "into characters",
    "punctuation": "at white space, with punctuation and Chinese characters apart from words",
    "elisions": "at white space, punctuation and after apostrophes (l' | ami)",
    "contractions": "at white space, punctuation and before contractions (do | n't, Anna | 's)",
    AT_WHITE_SPACE: "at white space",
}


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
        AT_WHITE_SPACE: (),
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


class FoundWords(NamedTuple):
    """The rule that finds most words of tagged sentences again in their text."""

    rule: WordSplit
    share: float  # of the words that it finds
    missing: str = ""  # the first word that it does not find

    @property
    def warning(self) -> str:
        """Why no rule suits, for people; "" if this one does."""
        if self.share >= _LEAST_FOUND:
            return ""
        return (
            "no rule splits plain text as the training sentences were split: the best one finds "
            f"{self.share:.0%} of their words, not `{self.missing}`. Give sentences as lists of "
            "words, or files in which words are split by one of the rules of `task.word_split`"
        )


def find_rule(sentences: Sequence[Sequence[str]], plain: Mapping | None = None) -> FoundWords:
    """Finds the rule by which sentences became words; by these, `plain` has words of their text."""
    sentences = sentences[:: 1 + len(sentences) // _MOST_SENTENCES]
    text = "\n".join(_text_of((plain or {}).get(tuple(words)) or words) for words in sentences)
    wanted = _places(itertools.chain.from_iterable(sentences), text)
    best, most = FoundWords(AT_WHITE_SPACE, 1.0 if not sentences else 0.0), 0.0
    for rule in ("characters", AT_WHITE_SPACE, "punctuation", "elisions", "contractions"):
        found = _places(split_words(text, rule), text)
        missing = [word for place, word in wanted.items() if place not in found]
        right = len(wanted) - len(missing)
        score = right / max(1, len(wanted) + len(found))
        if score > most:
            best, most = FoundWords(rule, right / len(wanted), *missing[:1]), score
    return best


def _places(words, text):
    """Returns words by where they begin and end in a text without spaces, or by number if not."""
    text, at, missed, places = "".join(text.split()), 0, 0, {}
    for word in words:
        begin = text.find(word, at, at + 2 * (missed + len(word)))
        if begin < 0:
            missed += len(word)
            places[len(places)] = word
        else:
            at, missed = begin + len(word), 0
            places[begin, at] = word
    return places


@functools.cache
def _unwritten_space():
    """Returns the expression for spaces that texts do not have between their words."""
    sign = characters_of(character_ranges(_is_sign))
    between = f"(?<=[{UNSPACED_SCRIPTS}]) (?=[{UNSPACED_SCRIPTS}])"
    elided = r"(?<=[^\W\d_]['’]) (?=[^\W\d_])"
    return re.compile(f"{between}|{elided}| (?=(?:[{sign}]+|{_CONTRACTED})(?: |$))")


def _text_of(words):
    """Returns words as a text that contains them, whatever may be around its punctuation."""
    return _JOINT_OF_WORDS.sub(" ", _unwritten_space().sub("", " ".join(words)))


def _is_sign(character):
    return unicodedata.category(character)[0] in "PS"


def _is_mark(character):
    return unicodedata.category(character)[0] == "M" or character == "\u200d"
