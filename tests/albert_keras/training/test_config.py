"""Settings of a pre-training run and their defaults."""

import pytest

from albert_keras.cli.arguments import read_values
from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import SettingsError


def test_flags_take_precedence_over_a_file():
    config = PretrainingConfig.of({"training": {"steps": 5, "seed": 3}}, steps=7, lr=None)
    assert config.training.steps == 7 and config.training.seed == 3


@pytest.mark.parametrize(
    "flags, given, name, lr, beta_2",
    [
        ({}, {}, "muon", 0.003, 0.98),
        ({}, {"lr": 0.01, "beta_2": 0.9}, "muon", 0.01, 0.9),
        ({}, {"name": "adamw"}, "adamw", 0.001, 0.999),
        ({"batch_size": 4096}, {"lr": "auto"}, "lamb", 1.76e-3, 0.999),
        ({"size": "albert-base", "batch_size": 1024}, {}, "lamb", 8.8e-4, 0.999),
        ({"size": "albert-base", "lr": 0.5}, {}, "muon", 0.5, 0.98),
    ],
)
def test_optimizer_and_rate_follow_model_and_batch_unless_given(flags, given, name, lr, beta_2):
    config = PretrainingConfig(optimizer=given).with_flags(**flags).resolved("float32")
    assert (config.optimizer.name, config.optimizer.beta_2) == (name, beta_2)
    assert config.optimizer.lr == pytest.approx(lr)
    assert config.resolved("mixed_bfloat16") == config


def test_the_model_has_the_vocabulary_size_of_the_records():
    config = PretrainingConfig(model={"size": "albert-base", "num_hidden_layers": 3})
    assert config.albert_config(500).vocab_size == 500
    assert config.albert_config(500).num_hidden_layers == 3


def test_mistakes_in_the_model_are_reported_with_their_section():
    with pytest.raises(SettingsError, match="`model.num_hiden_layers`.*`num_hidden_layers`"):
        PretrainingConfig(model={"num_hiden_layers": 3})


def test_an_invalid_time_budget_is_one_clear_problem():
    with pytest.raises(SettingsError) as caught:
        PretrainingConfig(training={"time_budget": "soon"})
    assert str(caught.value).splitlines()[1].strip() == (
        '`training.time_budget` must be a duration such as "8h", "1h30m" or "2d". '
        "Received: 'soon'."
    )


def test_reports_and_checkpoints_fall_on_host_calls():
    with pytest.raises(SettingsError, match="must be a multiple of `steps_per_execution`"):
        PretrainingConfig(training={"steps_per_execution": 7})


@pytest.mark.parametrize("steps, warmup", [(100, 6), (750, 750)])
def test_fewer_steps_than_the_warm_up_of_a_recipe_scale_it(steps, warmup):
    config = PretrainingConfig.of(read_values("continue"), steps=steps)
    assert (config.training.steps, config.optimizer.warmup_steps) == (steps, warmup)
