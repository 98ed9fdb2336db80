"""Scores of tagged words: precision, recall and F1 of their entities.

Entities are found as in the evaluation script of the CoNLL-2000 and CoNLL-2003 tasks, which the
package seqeval follows by default: a tag at an invalid position still starts or continues an
entity. So IOB1, IOB2 and BIOES (IOBES) need not be distinguished.

All functions take the true and the predicted tags of the same words, sentence by sentence.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from data_pipeline.errors import InputError

_TAG = re.compile(r"O|([BIES])(?:-(.*))?", re.DOTALL)
_TYPED_TAG = re.compile(r"[BIES]-.+", re.DOTALL)
_BARE_TAGS = {"O", "B", "I", "E", "S"}
_NO_TYPE = "_"  # of a tag that is only B, I, E or S


class Score(NamedTuple):
    """Counts of entities and their ratios; a ratio without a denominator is 0."""

    correct: int  # entities predicted with the right words and the right type
    predicted: int
    support: int  # true entities

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        both = self.predicted + self.support
        return 2 * self.correct / both if both else 0.0


class EntityScores(NamedTuple):
    """Scores of a set of sentences."""

    overall: Score  # over all entities (micro average), the figure that papers report
    by_type: dict[str, Score]  # by type of entity, true or predicted, sorted

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the types; 0 if there is none."""
        return sum(score.f1 for score in self.by_type.values()) / max(1, len(self.by_type))


def has_entities(tags: Iterable[str]) -> bool:
    """Returns whether tags mark entities: all like B-PER, or O and B-PER or B."""
    others = [tag for tag in tags if not _TYPED_TAG.fullmatch(tag)]
    return not others or ("O" in others and set(others) <= _BARE_TAGS)


def entities_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Finds the entities of a sentence: type, first word, last word + 1.

    An entity continues from B or I to I or E of the same type. All other tags but O start one.
    Tags are `O`, or B, I, E or S with or without a type, as `B-PER`; others are an InputError.
    """
    entities, begin, previous = [], 0, ("O", "")
    for word, tag in enumerate([*tags, "O"]):
        match = _TAG.fullmatch(tag)
        if not match:
            raise InputError(
                "Scores of entities require tags such as O, B-PER, I-PER, E-PER or S-PER. "
                f"Received: {tag!r}."
            )
        prefix, entity_type = match[1] or "O", match[2] or _NO_TYPE
        continues = previous[0] in "BI" and prefix in "IE" and entity_type == previous[1]
        if not continues:
            if previous[0] != "O":
                entities.append((previous[1], begin, word))
            begin = word
        previous = (prefix, entity_type)
    return entities


def entity_scores(truth, predicted) -> EntityScores:
    """Compares the entities of sentences (lists of sequences of str); errors as `entities_of`."""
    true_entities, found_entities = _numbered_entities(truth), _numbered_entities(predicted)
    correct = true_entities & found_entities
    by_type = {}
    for entity_type in sorted({entity[1] for entity in true_entities | found_entities}):
        counts = (
            sum(entity[1] == entity_type for entity in entities)
            for entities in (correct, found_entities, true_entities)
        )
        by_type[entity_type] = Score(*counts)
    return EntityScores(Score(len(correct), len(found_entities), len(true_entities)), by_type)


def entity_counts(truth, predicted) -> tuple[int, int]:
    """Returns numerator and denominator of the entity F1 of one sentence (sequences of str):
    twice the correct entities, and the true and the predicted ones together.
    """
    truth, predicted = set(entities_of(truth)), set(entities_of(predicted))
    return 2 * len(truth & predicted), len(truth) + len(predicted)


def _numbered_entities(sentences):
    return {
        (number, *entity) for number, tags in enumerate(sentences) for entity in entities_of(tags)
    }
