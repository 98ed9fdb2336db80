"""The settings of stages, and what is refused before anything is read."""

import pytest

from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import SettingsError

TWO = [{"share": 0.9, "data": "records-128", "num_hidden_layers": 2}, {"share": 0.1}]


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
        (
            [{"share": 0.5, "num_hidden_layers": 9}, {"share": 0.5}],
            "`stages.0.num_hidden_layers` must not exceed the depth of the model. Received: "
            "9, and 6.",
        ),
        (
            [
                {"share": 0.2, "num_hidden_layers": 4},
                {"share": 0.2, "num_hidden_layers": 3},
                {"share": 0.6},
            ],
            "`stages.1.num_hidden_layers` must not be smaller than in the stage before: a model "
            "can only grow. Received: 3 after 4.",
        ),
        (
            [{"share": 1, "num_hidden_layers": 3}],
            "`stages.0.num_hidden_layers` must be the depth of the model in the last stage. "
            "Received: 3, not 6.",
        ),
    ],
)
def test_stages_must_fit_together(stages, expected):
    (problem,) = problems_of(stages, model={"num_hidden_layers": 6})
    assert problem.startswith(expected)


def test_a_model_grows_only_if_its_layers_share_all_weights():
    stages = [{"share": 0.5, "num_hidden_layers": 1}, {"share": 0.5}]
    (problem,) = problems_of(stages, model={"num_hidden_layers": 6, "num_hidden_groups": 2})
    assert problem == (
        "`stages.0.num_hidden_layers` requires a model whose layers share all weights. "
        "Received: 'all' in 2 group(s)."
    )


def test_the_default_model_is_checked_when_it_is_known_to_be_the_one():
    stages = [{"share": 0.5, "num_hidden_layers": 7}, {"share": 0.5}]
    config = PretrainingConfig.of({"stages": stages})  # existing weights may have more layers
    with pytest.raises(
        SettingsError, match="stages.0.num_hidden_layers` must not exceed the depth of"
    ):
        config.albert_config(100)
