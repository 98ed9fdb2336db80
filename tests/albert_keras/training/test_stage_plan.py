"""The steps of a run are divided among its stages."""

import pytest

from albert_keras.training.stage_plan import StagePlan, stage_ends
from data_pipeline.errors import InputError


def test_ends_follow_from_the_shares():
    assert stage_ends(1000, [0.9, 0.1]) == (900, 1000)
    assert stage_ends(1000, [0.333, 0.333, 0.333]) == (333, 667, 1000)
    assert stage_ends(7, [1.0]) == (7,)


def test_each_stage_has_a_step():
    assert stage_ends(10, [0.0001, 0.0001, 0.9998]) == (1, 2, 10)
    assert stage_ends(10, [0.9998, 0.0001, 0.0001]) == (8, 9, 10)
    assert stage_ends(3, [0.98, 0.01, 0.01]) == (1, 2, 3)


def test_ends_are_multiples_of_the_steps_of_an_execution():
    assert stage_ends(1000, [0.33, 0.33, 0.34], 100) == (300, 700, 1000)
    assert stage_ends(950, [0.01, 0.01, 0.98], 100) == (100, 200, 950)
    assert stage_ends(201, [0.9, 0.05, 0.05], 100) == (100, 200, 201)


def test_a_run_must_have_a_step_for_each_stage():
    with pytest.raises(InputError, match="must be more than 200 for 3 stages and 100 steps per"):
        stage_ends(200, [0.3, 0.3, 0.4], 100)


def test_a_step_belongs_to_one_stage():
    plan = StagePlan([0.5, 0.5], [4, 8], [1, 3])
    assert [plan.number_at(step) for step in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 1]
    assert (plan.start_of(0), plan.start_of(1)) == (0, 4)
    assert plan.steps_ahead(2) == 2 + 4 * 3 and plan.steps_ahead(5) == 3
    assert plan.steps_ahead(4) == 4 * 3  # as long as so many of the stage that has ended
