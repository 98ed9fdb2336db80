"""How plain text becomes the words of a tagger: as its training files were split.

The rules are expressions that Python and the RE2 of a graph read alike, so that both find the same
words.
"""

import functools
import logging
import re
import unicodedata
from collections.abc import Sequence

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import TAGGING
from albert_keras.tasks.task_config import AT_WHITE_SPACE, TaskConfig, WordSplit
from data_pipeline.text.letters import UNSPACED_SCRIPTS
from data_pipeline.tokenizers.cleanup import character_ranges, characters_of
from data_pipeline.tokenizers.wordpiece import IDEOGRAPHS

#: A text that begins with this character is split at white space only: it consists of given words.
GIVEN_WORDS = "\x1f"  # "unit separator", itself white space
#: Signs that stay in a word if letters or digits are on both sides.
_INNER = re.escape(".,:'’-_/@&")
#: Training sentences that are looked at, at regular distances.
_MOST_EXAMPLES = 10_000
#: How each rule splits a text, for people.
SPLITS: dict[WordSplit, str] = {
    "characters": "into characters",
    "punctuation": "at white space, with punctuation and Chinese characters apart from words",
    AT_WHITE_SPACE: "at white space",
}

logger = logging.getLogger(__name__)


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


def with_word_split(config: TaskConfig, examples: Sequence[TaggedExample]) -> TaskConfig:
    """Returns the configuration of a tagger with the rule by which its examples were split.

    It is the one that finds the words of most sentences again in their text. Logs the rule, and
    warns if no rule suits them, as for words of Chinese or Thai.
    """
    if config.name not in TAGGING.own_tasks:
        return config
    if config.word_split is None:
        examples = examples[:: 1 + len(examples) // _MOST_EXAMPLES]
        texts = [_text_of(example.words) for example in examples]
        # Of equals the first: a sentence without punctuation says nothing about it.
        found = {
            rule: sum(
                split_words(text, rule) == list(example.words)
                for text, example in zip(texts, examples, strict=True)
            )
            for rule in ("characters", AT_WHITE_SPACE, "punctuation")
        }
        best = max(found, key=found.__getitem__)
        config = config.replace(word_split=best if found[best] else AT_WHITE_SPACE)
        if 2 * found[best] < len(examples):
            logger.warning(
                "No rule splits plain text as the training sentences were split: the best one "
                "finds the words of %.0f %% of them. Give sentences as lists of words.",
                100 * found[best] / len(examples),
            )
    log_word_split(config)
    return config


def log_word_split(config: TaskConfig) -> None:
    """Logs how the tagger of a configuration splits plain text."""
    logger.info("Plain text is split %s (task.word_split).", SPLITS[config.word_rule])


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
