"""Entities as conlleval and seqeval find them, worked out by hand."""

import pytest

from albert_keras.tasks.tagging.scores import entities_of, entity_scores, has_entities
from data_pipeline.errors import InputError


@pytest.mark.parametrize(
    "tags, entities",
    [
        # IOB2
        ("O B-PER I-PER O B-LOC", [("PER", 1, 3), ("LOC", 4, 5)]),
        # IOB1: B only between neighbours of one type
        ("I-PER B-PER O I-PER", [("PER", 0, 1), ("PER", 1, 2), ("PER", 3, 4)]),
        # BIOES
        ("S-PER B-LOC I-LOC E-LOC O", [("PER", 0, 1), ("LOC", 1, 4)]),
        (
            "B-LOC E-LOC E-LOC S-LOC S-LOC",
            [("LOC", i, j) for i, j in ((0, 2), (2, 3), (3, 4), (4, 5))],
        ),
        # BMES and BILOU
        ("B-LOC M-LOC M-LOC E-LOC S-PER O", [("LOC", 0, 4), ("PER", 4, 5)]),
        ("U-PER B-LOC I-LOC L-LOC B-PER L-PER", [("PER", 0, 1), ("LOC", 1, 4), ("PER", 4, 6)]),
        # What no scheme allows
        ("O E-PER I-PER", [("PER", 1, 2), ("PER", 2, 3)]),
        ("S-PER I-PER E-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("B-PER I-LOC I-PER", [("PER", 0, 1), ("LOC", 1, 2), ("PER", 2, 3)]),
        # Types with a hyphen, and none
        ("B-event-fire I-event-fire", [("event-fire", 0, 2)]),
        ("B I O B-", [("_", 0, 2), ("_", 3, 4)]),
        ("O O", []),
        ("", []),
    ],
)
def test_entities_are_found(tags, entities):
    assert entities_of(tags.split()) == entities
    assert has_entities(tags.split()) or len(set(tags.split())) < 2


@pytest.mark.parametrize("tag", ["NN", "X-PER", "PER-B", ""])
def test_a_tag_of_no_entity_scheme_is_refused(tag):
    with pytest.raises(InputError, match=f"require tags such as O, B-PER.* Received: '{tag}'"):
        entities_of(["O", tag])


def test_scores_are_by_exact_entity():
    truth = ["O O O B-MISC I-MISC I-MISC O".split(), "B-PER I-PER O".split()]
    predicted = ["O O B-MISC I-MISC I-MISC I-MISC O".split(), "B-PER I-PER O".split()]
    assert set(entity_scores(truth, predicted).values()) == {0.5}


def test_nothing_found_and_nothing_there_score_zero():
    assert set(entity_scores([["O"]], [["O"]]).values()) == {0.0}
