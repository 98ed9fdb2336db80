"""The settings of stages, and what is refused before anything is read."""

import pytest

from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import SettingsError

TWO = [{"share": 0.9, "data": "records-128"}, {"share": 0.1}]


def problems_of(stages, **sections):
    with pytest.raises(SettingsError) as error:
        PretrainingConfig.of({"stages": stages} | sections)
    return [str(problem) for problem in error.value.problems]


def test_stages_survive_the_record_of_a_run():
    config = PretrainingConfig.of({"stages": TWO}, size="albert-mini")
    again = PretrainingConfig.of(config.model_dump(mode="json"))
    assert again.stages == config.stages == config.with_flags(steps=5).stages
    assert str(config.stages[0].data) == "records-128" and config.stages[1].data is None


def test_a_run_without_stages_is_described_as_before():
    for config in (PretrainingConfig(), PretrainingConfig.of({"stages": None})):
        assert list(config.model_dump(mode="json")) == ["model", "training", "optimizer"]


def test_all_problems_are_reported_with_their_stage():
    found = problems_of([{"shares": 0.5}, {"share": 2, "batch_size": 0}], training={"steps": 0})
    assert found == [
        "`training.steps` must be greater than or equal to 1. Received: 0.",
        "`stages.0.share` is required.",
        "`stages.0.shares` is not a known key. Did you mean `share`?",
        "`stages.1.share` must be less than or equal to 1. Received: 2.",
        "`stages.1.batch_size` must be greater than or equal to 1. Received: 0.",
    ]


@pytest.mark.parametrize(
    "stages, expected",
    [
        ([{"share": 0.4}, {"share": 0.4}], "`stages.0.share` must sum to 1 over all stages. Rece"),
        ("x", "`stages` must be a list of stages, each with its `share`. Received: 'x'."),
    ],
)
def test_stages_must_fit_together(stages, expected):
    (problem,) = problems_of(stages)
    assert problem.startswith(expected)
