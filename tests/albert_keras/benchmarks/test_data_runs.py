"""Whose time is whose."""

import itertools
from pkgutil import resolve_name
from types import SimpleNamespace

import pytest

from albert_keras.benchmarks import data_runs as stages
from data_pipeline.building.build import build_records


@pytest.fixture
def ticking(monkeypatch):
    """Lets each look at the clock take a second."""
    seconds = itertools.count()
    monkeypatch.setattr(stages, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))


def test_a_moment_belongs_to_the_innermost_stage(ticking):
    clock = stages.StageClock()
    inner = clock.timed(lambda: 7, "masking")
    outer = clock.timed(lambda: inner() + inner(), "writing")
    clock.start()  # 0
    assert outer() == 14  # in at 1; inner in at 2, out at 3, in at 4, out at 5; out at 6
    clock.stop()  # 7
    assert {name: spent for name, spent in clock.seconds.items() if spent} == {
        "masking": 2,
        "writing": 3,
        stages.REST: 2,
    }


def test_an_iterator_is_charged_for_its_items_and_not_for_what_is_done_with_them(ticking):
    clock = stages.StageClock()
    items = clock.timed(lambda: iter([1, 2]), "reading")
    use = clock.timed(lambda item: item, "encoding")
    clock.start()
    assert [use(item) for item in items()] == [1, 2]
    clock.stop()
    # The call, two items and the end took a second each; so did both uses.
    assert clock.seconds["reading"] == 4 and clock.seconds["encoding"] == 2


def test_every_stage_of_a_build_is_seen_and_no_time_is_lost(
    tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path
):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n\n".join(document.text for document in tiny_documents))
    with stages.stage_clock() as clock:
        result = build_records([corpus], tiny_tokenizer, tmp_path / "out", tiny_data_config)
    assert list(clock.seconds) == [*stages.STAGES, stages.REST]
    assert all(seconds > 0 for seconds in clock.seconds.values())
    assert sum(clock.seconds.values()) == pytest.approx(result.seconds, abs=0.05)


def test_functions_are_left_as_they_were():
    before = [resolve_name(name) for names in stages.STAGES.values() for name in names]
    with stages.stage_clock():
        pass
    after = [resolve_name(name) for names in stages.STAGES.values() for name in names]
    assert before == after
