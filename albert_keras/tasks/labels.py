"""Labels of examples: their numbers, and the examples held out to score a model on."""

import collections
from collections.abc import Sequence

from albert_keras.tasks.examples import TaggedExample, digest_of_texts
from data_pipeline.errors import InputError


def check_labels(labels: Sequence[str], what: str):
    """Raises InputError, which names `what`, unless there are two or more labels, all different."""
    if len(set(labels)) < 2 or len(set(labels)) < len(labels):
        listing = ", ".join(labels) or "none"
        raise InputError(f"{what} must be at least two, all different. Received: {listing}.")


def hold_out(examples: list, share: float) -> tuple[list, list]:
    """Splits texts or tagged sentences into those to train on and those held out for scoring.

    Equal texts, whatever their case and white space, stay together, and the order makes no
    difference. The text decides on which side an example is, as if at random with the probability
    `share`, but of each class at least one text is held out and half of the rows, or more if
    `share` is less, are kept, as far as there are two texts. Scores and several labels count as one
    class.

    Returns:
        The examples to train on and those held out, in their order.

    Raises:
        InputError: If there are fewer than two different texts.
    """
    rows = collections.Counter(map(_fraction, examples))
    if len(rows) < 2:
        raise InputError(
            "Holding out examples requires at least two different texts. "
            f"Received: {len(rows)} in {len(examples)} examples. Give a development file, or "
            "an empty line after each sentence in columns."
        )
    classes = collections.defaultdict(dict)
    for text, label in _classes_of_texts(examples).items():
        classes[label][text] = rows[text]
    held = set().union(*(_held_out(texts, share) for texts in classes.values()))
    if not held:  # each class has one text only
        held.add(min(rows))
    sides: tuple[list, list] = ([], [])
    for example in examples:
        sides[_fraction(example) in held].append(example)
    return sides


def in_parts(examples: list, count: int) -> list[tuple[list, list]]:
    """Divides texts or tagged sentences into parts, for each of which the others can be trained on.

    Equal texts are in one part, as of `hold_out`, and each class is in all parts alike.

    Returns:
        For each part the examples of the others, and its own.

    Raises:
        InputError: If there are fewer different texts than parts.
    """
    classes = _classes_of_texts(examples)
    if len(classes) < count:
        raise InputError(
            f"Cross-validation requires at least {count} different texts. Received: {len(classes)}."
        )
    ordered = sorted(classes, key=lambda text: (classes[text], text))
    part_of = {text: number % count for number, text in enumerate(ordered)}
    parts: list[tuple[list, list]] = [([], []) for _ in range(count)]
    for example in examples:
        for number, sides in enumerate(parts):
            sides[part_of[_fraction(example)] == number].append(example)
    return parts


def _classes_of_texts(examples):
    """Returns the class of each text, by its `_fraction`; of scores and several labels one."""
    classes: dict[float, str] = {}
    for example in examples:
        label, text = getattr(example, "label", None), _fraction(example)
        label = label if isinstance(label, str) else ""
        classes[text] = min(label, classes.get(text, label))  # if texts contradict
    return classes


def _held_out(rows, share):
    """Returns the texts of a class that are held out; `rows` counts the rows of each."""
    held, room = set(), max(share, 0.5) * sum(rows.values())
    for text in sorted(rows):
        is_next = text <= share or not held
        if is_next and rows[text] <= room and len(held) < len(rows) - 1:
            held.add(text)
            room -= rows[text]
    return held


def _fraction(example):
    """Returns a number from 0 to 1 that the text of an example determines, as if at random."""
    is_tagged = isinstance(example, TaggedExample)
    texts = example.words if is_tagged else (example.first, example.second or "")
    return digest_of_texts(" ".join(text.casefold().split()) for text in texts) / 2**64
