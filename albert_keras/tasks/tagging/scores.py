"""Scores of tagged words: precision, recall and F1 of their entities.

Entities are found as in the evaluation script of the CoNLL-2000 and CoNLL-2003 tasks, which the
package seqeval follows by default: a tag at an invalid position still starts or continues an
entity. So IOB1, IOB2 and IOBES need not be distinguished. BMES and BILOU are IOBES in other
letters.

All functions take the true and the predicted tags of the same words, sentence by sentence.
"""

import functools
import re
from collections.abc import Iterable, Sequence

from data_pipeline.errors import InputError

#: A tag as prefix and type, `B-PER` or `B_PER`; the type may be missing.
_TAG = re.compile(r"([BIESMLU])(?:[-_](.*))?", re.DOTALL)
#: The prefixes of a scheme -> what they are called in IOBES: BMES and BILOU.
_SCHEMES = {"BIES": {}, "BMES": {"M": "I"}, "BILU": {"L": "E", "U": "S"}}
_OUTSIDE = "O"  # the tag of other words than those of entities
_NO_TYPE = "_"  # of a tag that is only B, I, E or S


def has_entities(tags: Iterable[str]) -> bool:
    """Returns whether tags mark entities: like B-PER, or O and B, in IOB, IOBES, BMES or BILOU."""
    return _parser(tuple(dict.fromkeys(tags))) is not None


def entities_of(tags: Sequence[str], known: Sequence[str] | None = None):
    """Finds the entities of a sentence: type, first word, last word + 1.

    An entity continues from B or I to I or E of the same type. All other tags but O start one.

    Args:
        tags: Of one sentence.
        known: All tags of the task, which show the scheme; None takes those of the sentence.

    Raises:
        InputError: If the tags are of no scheme of `has_entities`.
    """
    parse = _parser(tuple(dict.fromkeys(known if known is not None else tags)))
    if parse is None:
        strange = [tag for tag in tags if tag != "O" and not _TAG.fullmatch(tag)]
        raise InputError(
            "Scores of entities require tags such as O, B-PER, I-PER, E-PER or S-PER. "
            f"Received: {strange[0]!r}."
        )
    entities, begin, previous = [], 0, ("O", "")
    for word, tag in enumerate([*tags, None]):
        prefix, entity_type = ("O", _NO_TYPE) if tag is None else parse(tag)
        continues = previous[0] in "BI" and prefix in "IE" and entity_type == previous[1]
        if not continues:
            if previous[0] != "O":
                entities.append((previous[1], begin, word))
            begin = word
        previous = (prefix, entity_type)
    return entities


@functools.lru_cache(maxsize=64)
def _parser(tags):
    """Returns a function from a tag to its IOBES prefix and its type; None if tags mark none."""
    found = [_TAG.fullmatch(tag) for tag in tags if tag != _OUTSIDE]
    if not all(found):
        return None
    prefixes = {match[1] for match in found}
    names = next((each for letters, each in _SCHEMES.items() if prefixes <= set(letters)), None)
    is_untyped = any(not match[2] for match in found)
    if names is None or (is_untyped and _OUTSIDE not in tags):  # letters alone need O
        return None

    def parse(tag):
        if tag == _OUTSIDE:
            return "O", _NO_TYPE
        match = _TAG.fullmatch(tag)
        return names.get(match[1], match[1]), match[2] or _NO_TYPE

    return parse


def entity_scores(truth, predicted, known=None) -> dict[str, float]:
    """Compares the entities of sentences (lists of sequences of str), see `entities_of`.

    Returns:
        "f1", "precision" and "recall" of all entities (micro average), the figures that papers
        report, and "macro_f1", the mean of the F1 of the types; 0 where undefined.
    """
    known = known or [tag for tags in (*truth, *predicted) for tag in tags]
    true, found = (
        {(at, *entity) for at, tags in enumerate(each) for entity in entities_of(tags, known)}
        for each in (truth, predicted)
    )
    correct = true & found
    types = {entity[1] for entity in true | found}
    of_types = [
        _ratio(2 * counts[0], counts[1] + counts[2])
        for counts in (
            [sum(entity[1] == one for entity in each) for each in (correct, true, found)]
            for one in sorted(types)
        )
    ]
    return {
        "f1": _ratio(2 * len(correct), len(true) + len(found)),
        "precision": _ratio(len(correct), len(found)),
        "recall": _ratio(len(correct), len(true)),
        "macro_f1": _ratio(sum(of_types), len(of_types)),
    }


def entity_counts(truth, predicted, known) -> tuple[int, int]:
    """Returns numerator and denominator of the entity F1 of one sentence (sequences of str):
    twice the correct entities, and the true and the predicted ones together.
    """
    truth, predicted = (set(entities_of(tags, known)) for tags in (truth, predicted))
    return 2 * len(truth & predicted), len(truth) + len(predicted)


def _ratio(part, whole):
    return part / whole if whole else 0.0
