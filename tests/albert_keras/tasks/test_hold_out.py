"""A share of the examples is held out, by text alone."""

import random

import pytest

from albert_keras.tasks.examples import TaggedExample, TextExample
from albert_keras.tasks.labels import hold_out

EXAMPLES = [TextExample(str(number), f"text {number}", label="a") for number in range(2000)]


def test_about_the_share_is_held_out_and_nothing_is_lost():
    rest, held = hold_out(EXAMPLES, 0.1)
    assert 150 < len(held) < 250
    assert sorted(rest + held) == sorted(EXAMPLES)
    assert held == [example for example in EXAMPLES if example in set(held)]


def test_order_labels_and_other_examples_change_nothing():
    _, held = hold_out(EXAMPLES, 0.1)
    texts = {example.first for example in held}
    shuffled = random.Random(1).sample(EXAMPLES, 1000)
    changed = [example._replace(id="x", label="b") for example in shuffled]
    _, again = hold_out(changed, 0.1)
    assert {example.first for example in again} == texts & {example.first for example in shuffled}
    _, more = hold_out(EXAMPLES, 0.2)
    assert texts < {example.first for example in more}


def test_equal_texts_stay_together():
    twins = [example._replace(first=f" {example.first.upper()}\n") for example in EXAMPLES]
    rest, held = hold_out(EXAMPLES + twins, 0.3)
    sides = [{example.first.strip().casefold() for example in side} for side in (rest, held)]
    assert sides[0].isdisjoint(sides[1])
    assert len(rest) == 2 * len(sides[0]) and len(held) == 2 * len(sides[1])


@pytest.mark.parametrize("share", [1e-9, 0.1, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_no_side_is_ever_empty(count, share):
    examples = [TaggedExample(str(number), ("word", str(number))) for number in range(count)]
    rest, held = hold_out(examples, share)
    assert rest and held and len(rest) + len(held) == count
    if share < 1e-8:
        assert len(held) == 1
    if share > 1 - 1e-8:
        assert len(rest) == 1
    backwards = hold_out(examples[::-1], share)
    assert [sorted(side) for side in backwards] == [sorted(rest), sorted(held)]
