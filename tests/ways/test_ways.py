"""All ways to an answer give the same answers to odd texts, or refuse them with the same words."""

import re

import pytest

from data_pipeline.errors import InputError
from tests.parameters import slow
from tests.ways.files import can_be_read
from tests.ways.kinds import KINDS
from tests.ways.odd_texts import ODD_TEXTS
from tests.ways.ways import OF_BYTES, OF_UNICODE, WAYS, World, answer

#: Kinds that are always tried; the others are slow.
_USUAL = ("classes",)
#: The largest difference of probabilities, and of other numbers relative to their size.
TOLERANCE = 1e-6
#: Where an input stands, before what is wrong with it.
_PLACE = re.compile(r"^(?:error: )?(?:Line \d+ of stdin: |Input \d+ of \d+: )?")


def _is_unicode(text):
    return isinstance(text, str) and not re.search("[\ud800-\udfff]", text)


def _odd_inputs(kind):
    """Returns all inputs with an odd text, by the place and the name of the text."""
    return {
        f"{place}: {name}": one
        for name, text in ODD_TEXTS.items()
        for place, one in kind.odd_inputs(text).items()
    }


def _has(input_, is_wanted):
    texts = [one for value in input_.values() for one in ([value], value)[isinstance(value, list)]]
    return any(map(is_wanted, texts))


def _is_bytes(text):
    return isinstance(text, bytes)


def outcomes(way, world, inputs):
    """Returns the answer to each input, or why it is refused, a text."""
    try:
        return way(world, inputs)
    except InputError as error:
        if len(inputs) == 1:
            return [_PLACE.sub("", str(error))]
    half = len(inputs) // 2
    return outcomes(way, world, inputs[:half]) + outcomes(way, world, inputs[half:])


def differs(expected, found):
    """Returns whether two answers, or reasons, are not the same."""
    if isinstance(expected, str) or isinstance(found, str):
        return expected != found
    names = (expected.keys() & found.keys()) - {"numbers"}
    if any(not _same(expected[name], found[name]) for name in names):
        return True
    return not _same(expected["numbers"], found["numbers"])


def _same(one, other):
    if isinstance(one, float) or isinstance(other, float):
        return abs(one - other) <= TOLERANCE * max(1.0, abs(one))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _ties(world, answers):
    """Returns the questions whose score is the threshold, which was tuned to be that of one."""
    threshold = world.model.thresholds.get("null_threshold")
    if threshold is None:
        return []
    found = {key: one["numbers"][0] for key, one in answers.items() if isinstance(one, dict)}
    return [key for key, score in found.items() if abs(score - threshold) < 1e-5]


@pytest.fixture(scope="module")
def compared(tiny_tokenizer, tmp_path_factory):
    """Returns a function from the name of a kind to its World, and the answers of `answer`."""
    made = {}

    def compare(name):
        if name not in made:
            kind, folder = KINDS[name], tmp_path_factory.mktemp(name)
            inputs = _odd_inputs(kind)
            dev = [one for one in inputs.values() if not _has(one, lambda t: not _is_unicode(t))]
            dev = [one for one in dev if can_be_read(kind, one)]
            dev = dev if name != "tags" else [{"words": ["The", "ferry", "left"]}]
            world = World(kind, folder, tiny_tokenizer, dev)
            expected = outcomes(answer, world, list(inputs.values()))
            expected = dict(zip(inputs, expected, strict=True))
            for key in _ties(world, expected):
                del inputs[key], expected[key]
            made[name] = world, inputs, expected
        return made[name]

    yield compare
    for world, *_ in made.values():
        world.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*_USUAL, *slow(*(kind for kind in KINDS if kind not in _USUAL))])
def test_all_ways_answer_odd_texts_alike(name, way, compared):
    world, inputs, expected = compared(name)
    asked = {
        key: one
        for key, one in inputs.items()
        if (way in OF_BYTES or not _has(one, _is_bytes))
        and (way not in OF_UNICODE or not _has(one, lambda text: _has_half(text)))
    }
    if way == "development_scores" and name == "tags":
        pytest.skip("development examples have words")
    if way == "development_scores":
        asked = {key: one for key, one in asked.items() if can_be_read(world.kind, one)}
    # Those that `answer` refuses one by one, so that the others are asked together.
    together = [key for key in asked if not isinstance(expected[key], str)]
    alone = [key for key in asked if isinstance(expected[key], str)]
    found = dict(
        zip(together, outcomes(WAYS[way], world, [asked[key] for key in together]), strict=True)
    )
    found |= {key: outcomes(WAYS[way], world, [asked[key]])[0] for key in alone}
    wrong = [key for key in asked if differs(expected[key], found[key])]
    assert not wrong, "\n".join(f"{key}: {expected[key]}, but {found[key]}" for key in wrong)


def _has_half(text):
    return isinstance(text, str) and not _is_unicode(text)
