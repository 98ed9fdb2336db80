"""How runs are arranged and summed up."""

import os
import sys

import pytest

from data_pipeline.errors import InputError
from tests.benchmarks import measure


def test_runs_take_turns_and_every_second_round_goes_backwards():
    seen = []
    actions = {name: lambda name=name: seen.append(name) or len(seen) for name in "abc"}
    assert measure.in_turn(actions, 2) == {"a": [1, 6], "b": [2, 5], "c": [3, 4]}
    assert seen == list("abccba")


def test_ratios_are_those_of_one_round():
    assert measure.ratios([2, 30, 4], [1, 10, 4]) == {"median": 2, "low": 1, "high": 3}


def test_a_new_process_has_loaded_nothing_and_forgets_the_memory_of_its_parent():
    held = b"x" * 300_000_000
    (number, is_loaded, peak), seconds = measure.in_new_process(_look_around)
    assert len(held) and measure.peak_mb() > 300
    assert number != os.getpid() and not is_loaded and seconds > 0
    assert 5 < peak < 200


def _look_around():
    return os.getpid(), "tensorflow" in sys.modules, measure.peak_mb()


def test_a_killed_process_is_told_in_a_sentence():
    with pytest.raises(InputError, match="ended before its work was done"):
        measure.in_new_process(os._exit, 9)


def test_the_machine_is_described():
    facts = measure.machine()
    assert facts["cores"] >= 1 and facts["cpu"] and facts["load"] >= 0
    assert facts["numpy"].startswith(("1.", "2.")) and facts["tensorflow"].startswith("2.")
