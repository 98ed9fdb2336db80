"""Labels have numbers, and a share of the examples is held out, by text alone."""

import collections
import random

import pytest

from albert_keras.tasks.examples import TaggedExample, TextExample
from albert_keras.tasks.labels import check_labels, hold_out
from data_pipeline.errors import InputError

EXAMPLES = [TextExample(str(number), f"text {number}", label="a") for number in range(2000)]


def test_order_labels_and_other_examples_change_nothing():
    rest, held = hold_out(EXAMPLES, 0.1)
    assert 150 < len(held) < 250 and sorted(rest + held) == sorted(EXAMPLES)
    assert held == [example for example in EXAMPLES if example in set(held)]
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


@pytest.mark.parametrize("share, count", [(1e-9, 2), (1e-9, 7), (0.5, 3), (1 - 1e-9, 7)])
def test_no_side_is_ever_empty(count, share):
    examples = [TaggedExample(str(number), ("word", str(number))) for number in range(count)]
    rest, held = hold_out(examples, share)
    assert len(rest) + len(held) == count
    assert rest and len(held) >= 1 and (share != 1e-9 or len(held) == 1)
    backwards = hold_out(examples[::-1], share)
    assert [sorted(side) for side in backwards] == [sorted(rest), sorted(held)]


def test_each_class_keeps_half_of_its_rows_and_is_scored_if_it_has_two_texts():
    examples = [TextExample(f"{n}", f"text {n}", None, f"class {n % 40}") for n in range(200)]
    examples += [TextExample("x", "alone", None, "single")]
    examples += [TextExample(f"p{n}", "often" if n else "once", None, "pair") for n in range(6)]
    for share in (1e-9, 0.1, 0.5):
        rest, held = hold_out(examples, share)
        counts = [collections.Counter(one.label for one in side) for side in (rest, held)]
        assert all(1 <= counts[1][f"class {n}"] <= 2 < counts[0][f"class {n}"] for n in range(40))
        assert (counts[0]["single"], counts[1]["single"]) == (1, 0)
        assert (counts[0]["pair"], counts[1]["pair"]) == (5, 1)  # rows count, not texts
    same = [TextExample(f"{n}", f"text {n % 2}", None, f"class {n}") for n in range(4)]
    rest, held = hold_out(same, 0.1)  # labels that contradict stay together, too
    assert {one.first for one in rest}.isdisjoint(one.first for one in held)
    rest, held = hold_out(examples[:40], 0.1)  # a row of each class
    assert (len(rest), len(held)) == (39, 1)


@pytest.mark.parametrize("labels", [(), ("yes",), ("yes", "no", "yes")])
def test_fewer_than_two_different_labels_are_refused(labels):
    check_labels(("yes", "no"), "`labels`")
    with pytest.raises(InputError, match=f"`labels` must be at least two.*: {', '.join(labels)}"):
        check_labels(labels, "`labels`")
