"""How well words were tagged: precision, recall and F1 of entities, accuracy of plain tags.

Entities are found as the evaluation script of the CoNLL-2000 and CoNLL-2003 tasks finds them, which
the package seqeval follows by default: a tag that should not stand where it does still begins or
continues an entity. So IOB1, IOB2 and BIOES (IOBES) need not be told apart.
"""

import re
from typing import NamedTuple

from data_pipeline.errors import InputError

_TAG = re.compile(r"O|([BIES])(?:-(.*))?", re.DOTALL)
_TYPED_TAG = re.compile(r"[BIES]-.+", re.DOTALL)
_BARE_TAGS = {"O", "B", "I", "E", "S"}
_NO_TYPE = "_"  # of a tag that is only B, I, E or S


class Score(NamedTuple):
    """Counts of entities and what follows from them; a ratio without a denominator is 0.

    Attributes:
        correct: int. Entities predicted with the right words and the right type.
        predicted: int. Entities predicted.
        support: int. Entities there are.
    """

    correct: int
    predicted: int
    support: int

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
    """Scores of a set of sentences.

    Attributes:
        overall: Score. Over all entities (micro average), the figure that papers report.
        by_type: dict of str to Score. By type of entity, true or predicted, sorted.
    """

    overall: Score
    by_type: dict[str, Score]

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the types; 0 where there is none."""
        return sum(score.f1 for score in self.by_type.values()) / max(1, len(self.by_type))


def has_entities(tags) -> bool:
    """Tells whether tags (iterable of str) are of entities: all like B-PER, or O and B-PER or B."""
    others = [tag for tag in tags if not _TYPED_TAG.fullmatch(tag)]
    return not others or ("O" in others and set(others) <= _BARE_TAGS)


def entities_of(tags) -> list[tuple[str, int, int]]:
    """Finds the entities of a sentence.

    An entity goes on from B or I to I or E of the same type. All other tags but O begin one.

    Args:
        tags: sequence of str. `O`, or B, I, E or S with or without a type: `B-PER`.

    Returns:
        list of (type, first word, last word + 1).

    Raises:
        InputError: If a tag is none of these.
    """
    entities, begin, before = [], 0, ("O", "")
    for place, tag in enumerate([*tags, "O"]):
        match = _TAG.fullmatch(tag)
        if not match:
            raise InputError(
                "Scores of entities need tags such as O, B-PER, I-PER, E-PER or S-PER. "
                f"Received: {tag!r}."
            )
        prefix, kind = match[1] or "O", match[2] or _NO_TYPE
        goes_on = before[0] in "BI" and prefix in "IE" and kind == before[1]
        if not goes_on:
            if before[0] != "O":
                entities.append((before[1], begin, place))
            begin = place
        before = (prefix, kind)
    return entities


def entity_scores(truth, predicted) -> EntityScores:
    """Compares entities, sentence by sentence.

    Args:
        truth: list of sequences of str. The right tags of the words of each sentence.
        predicted: list of sequences of str. Tags for the same words.

    Returns:
        EntityScores.

    Raises:
        InputError: If sentences or words differ in number or a tag belongs to no entity scheme.
    """
    _check_lengths(truth, predicted)
    true_entities, found_entities = _numbered_entities(truth), _numbered_entities(predicted)
    correct = true_entities & found_entities
    types = sorted({entity[1] for entity in true_entities | found_entities})
    by_type = {
        kind: Score(
            *(
                sum(entity[1] == kind for entity in entities)
                for entities in (correct, found_entities, true_entities)
            )
        )
        for kind in types
    }
    overall = Score(len(correct), len(found_entities), len(true_entities))
    return EntityScores(overall, by_type)


def entity_counts(truth, predicted) -> tuple[int, int]:
    """Counts what the F1 of entities is the ratio of, in one sentence.

    Args:
        truth, predicted: sequence of str. Tags of its words.

    Returns:
        tuple. Twice the correct entities, and the true and the predicted ones together.
    """
    truth, predicted = set(entities_of(truth)), set(entities_of(predicted))
    return 2 * len(truth & predicted), len(truth) + len(predicted)


def entity_table(scores) -> str:
    """Returns EntityScores as lines of text, a row for each type and one for all."""
    rows = [*scores.by_type.items(), ("all", scores.overall)]
    width = max(len(name) for name, _ in rows)
    lines = [f"{'':{width}}  precision  recall      f1  support"]
    lines += [
        f"{name:{width}}  {score.precision:9.4f}  {score.recall:6.4f}  {score.f1:6.4f}  "
        f"{score.support:7d}"
        for name, score in rows
    ]
    return "\n".join(lines)


def tag_accuracy(truth, predicted) -> float:
    """Returns the share of words with the right tag; arguments as in `entity_scores`, any tags.

    Raises:
        InputError: If sentences or words differ in number or there is no word.
    """
    _check_lengths(truth, predicted)
    words = sum(map(len, truth))
    if not words:
        raise InputError("Accuracy needs at least one word. Received: none.")
    pairs = zip(truth, predicted, strict=True)
    right = sum(
        tag == guess for tags, guesses in pairs for tag, guess in zip(tags, guesses, strict=True)
    )
    return right / words


def _numbered_entities(sentences):
    return {
        (number, *entity) for number, tags in enumerate(sentences) for entity in entities_of(tags)
    }


def _check_lengths(truth, predicted):
    if len(truth) != len(predicted):
        raise InputError(
            "There should be predicted tags for every sentence. "
            f"Received: {len(predicted)} for {len(truth)}."
        )
    for number, (tags, guesses) in enumerate(zip(truth, predicted, strict=True), start=1):
        if len(tags) != len(guesses):
            raise InputError(
                f"Sentence {number} should have a predicted tag for every word. "
                f"Received: {len(guesses)} for {len(tags)}."
            )
