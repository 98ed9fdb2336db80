"""Settings of a pre-training run and of its stages, and their defaults."""

import pytest

from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import SettingsError

TWO = [{"share": 0.9, "data": "records-128"}, {"share": 0.1}]


def test_flags_take_precedence_over_a_file():
    config = PretrainingConfig.of({"training": {"steps": 5, "seed": 3}}, steps=7, lr=None)
    assert config.training.steps == 7 and config.training.seed == 3


@pytest.mark.parametrize(
    "flags, given, name, lr, beta_2",
    [
        ({}, {}, "muon", 0.003, 0.98),
        ({"batch_size": 4096}, {"lr": "auto"}, "lamb", 1.76e-3, 0.999),
        ({"size": "albert-base", "lr": 0.5}, {}, "muon", 0.5, 0.98),
    ],
)
def test_optimizer_and_rate_follow_model_and_batch_unless_given(flags, given, name, lr, beta_2):
    config = PretrainingConfig(optimizer=given).with_flags(**flags).resolved("float32")
    assert (config.optimizer.name, config.optimizer.beta_2) == (name, beta_2)
    assert config.optimizer.lr == pytest.approx(lr)
    assert config.resolved("mixed_bfloat16") == config


def test_stages_survive_the_record_of_a_run():
    config = PretrainingConfig.of({"stages": TWO}, size="albert-mini")
    again = PretrainingConfig.of(config.model_dump(mode="json"))
    assert again.stages == config.stages == config.with_flags(steps=5).stages
    assert str(config.stages[0].data) == "records-128" and config.stages[1].data is None
    for config in (PretrainingConfig(), PretrainingConfig.of({"stages": None})):
        assert config.model_dump(mode="json")["stages"] == []


@pytest.mark.parametrize(
    "values, problems",
    [
        (
            {"stages": [{"shares": 0.5}], "training": {"time_budget": "soon"}},
            [
                '`training.time_budget` must be a duration such as "8h", "1h30m" or "2d". '
                "Received: 'soon'.",
                "`stages.0.share` is required.",
                "`stages.0.shares` is not a known key. Did you mean `share`?",
            ],
        ),
        (
            {"stages": [{"share": 0.4}, {"share": 0.4}]},
            ["`stages.0.share` must sum to 1 over all stages. Received: 0.4 + 0.4 = 0.8."],
        ),
        (
            {"stages": "x"},
            ["`stages` must be a list of stages, each with its `share`. Received: 'x'."],
        ),
        (
            {"training": {"steps_per_execution": 7}},
            ["`training.checkpoint_every` must be a multiple", "`training.report_every` must be"],
        ),
    ],
)
def test_all_problems_are_reported_with_their_section_and_stage(values, problems):
    with pytest.raises(SettingsError) as error:
        PretrainingConfig.of(values)
    for problem, expected in zip(map(str, error.value.problems), problems, strict=True):
        assert problem.startswith(expected)
