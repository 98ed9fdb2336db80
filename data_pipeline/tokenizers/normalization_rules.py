"""The clean-up as rules for SentencePiece's own normaliser.

A vocabulary trained with these rules cleans up text by itself. Python, TensorFlow and any other
SentencePiece runtime then agree by construction, as they all call the same model.

The rules are the composition of `clean_up`, `PLAIN_MARKS` and `nmt_nfkc`, SentencePiece's default,
so that `don’t` and `don't` are the same word. They are
applied by longest match from left to right, so they see a few characters at a time, never the
whole text. This has two accepted consequences:

- a capital sigma always becomes `σ`, never the final `ς` that `str.lower` writes at the end of a
  word;
- several marks on one letter are composed only in the canonical order, and a deleted mark between
  the parts of a syllable keeps them apart.
"""

import collections
import functools
import itertools
import tempfile
import unicodedata
from collections.abc import Mapping

import sentencepiece

from data_pipeline.files import naming
from data_pipeline.tokenizers.cleanup import PLAIN_MARKS, clean_up

#: The longest source, in characters: a letter with three marks.
_LONGEST_SOURCE = 4
#: Stands between sources that are cleaned up together: a private character, which never changes
#: and joins with nothing.
_BETWEEN = "\ue000"


@functools.cache
def normalizer_of(
    lower_case: bool, strip_accents: bool
) -> tuple[sentencepiece.SentencePieceNormalizer, str]:
    """Returns SentencePiece's normaliser with the rules, and these for `normalization_rule_tsv`.

    That is a rule per line: hexadecimal code points, with a tab between source and target. Both are
    made once in a process, which takes seconds: there are 200,000 rules.
    """
    rules = normalization_rules(lower_case, strip_accents).items()
    tsv = "".join(f"{_hexadecimal(source)}\t{_hexadecimal(target)}\n" for source, target in rules)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file, naming(file.name):
        file.write(tsv)
        file.flush()
        return sentencepiece.SentencePieceNormalizer(rule_tsv=file.name), tsv


def normalization_rules(lower_case: bool = True, strip_accents: bool = True) -> dict[str, str]:
    """Returns the rules, which map one to four characters to their replacement.

    The settings are the same as for `clean_up`. Characters that do not change have no rule.
    """
    nmt_nfkc = sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc",
        add_dummy_prefix=False,
        escape_whitespaces=False,
        remove_extra_whitespaces=False,
    )
    composed = _composable_sequences()
    capitals = _capital_variants(composed) if lower_case else []
    sources = [*_assigned_characters(), *capitals]
    cleaned = clean_up(_BETWEEN.join(["", *sources, ""]), lower_case, strip_accents)
    cleaned = cleaned.translate(str.maketrans(PLAIN_MARKS))
    _, *cleaned, _ = nmt_nfkc.normalize(cleaned).split(_BETWEEN)
    targets = dict(zip(sources, cleaned, strict=True))
    rules = {char: targets[char] for char in _assigned_characters() if char != targets[char]}
    deleted = {source for source, target in rules.items() if not target}
    # Short sequences come first, so that one whose parts already give its result is skipped.
    for source in sorted([*composed, *capitals], key=len):
        target = targets[composed.get(source, source)]
        # Of several characters, one remains only if they join or others are deleted.
        joins = len(target) == 1 and deleted.isdisjoint(source)
        if joins or apply_rules(rules, source) != target:
            rules[source] = target
    return rules


def apply_rules(rules: Mapping[str, str], text: str) -> str:
    """Returns the text after replacing, from left to right, the longest source that matches."""
    replaced = []
    position = 0
    while position < len(text):
        for length in range(min(_LONGEST_SOURCE, len(text) - position), 0, -1):
            source = text[position : position + length]
            if source in rules or length == 1:
                replaced.append(rules.get(source, source))
                position += length
                break
    return "".join(replaced)


def _hexadecimal(text):
    return text.encode("utf-32-be").hex(" ", 4)


@functools.cache
def _assigned_characters():
    """Returns the characters that may change: all but unassigned and private ones."""
    # The planes from 4 to 13 have no characters, and those from 15 on are private.
    characters = map(chr, itertools.chain(range(1, 0x40000), range(0xE0000, 0xE1000)))
    return [c for c in characters if unicodedata.category(c) not in ("Cn", "Co", "Cs")]


def _composable_sequences():
    """Returns all ways to write a composed character as a sequence -> that character.

    For example `e`, circumflex and acute, or `ê` and acute, or a full-width `e` with both; and
    the parts of a Hangul syllable. The compatibility decomposition (NFKD) is that of the character.
    """
    variants = collections.defaultdict(list)
    for character in _assigned_characters():
        decomposed = unicodedata.normalize("NFKD", character)
        if len(decomposed) == 1:
            variants[decomposed].append(character)
    composed = {}
    for character in _assigned_characters():
        decomposed = unicodedata.normalize("NFD", character)
        if len(decomposed) > 1:
            partly_composed = unicodedata.normalize("NFC", decomposed[:-1]) + decomposed[-1]
            for parts in {decomposed, partly_composed}:
                choices = (variants.get(part, (part,)) for part in parts)
                sequences = map("".join, itertools.product(*choices))
                composed.update(dict.fromkeys(sequences, character))
    return composed


def _capital_variants(composed):
    """Returns other sequences whose lower case is given: with caron, only `j` is composed."""
    capitals = collections.defaultdict(list)
    for character in _assigned_characters():
        lowered = character.lower()
        if lowered != character and len(lowered) == 1:
            capitals[lowered].append(character)
    variants = {c + source[1:] for source in composed for c in capitals.get(source[0], ())}
    return variants - composed.keys()
