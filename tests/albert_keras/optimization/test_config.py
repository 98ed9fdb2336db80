import math

import pytest

from albert_keras.optimization.config import OptimizerConfig, default_warmup_steps, scaled_lr
from data_pipeline.errors import InputError
from data_pipeline.settings import SettingsError


@pytest.mark.parametrize(
    "batch_size, lr", [(4096, 1.76e-3), (1024, 8.8e-4), (512, 6.2225e-4), (64, 2.2e-4)]
)
def test_the_learning_rate_grows_with_the_root_of_the_batch(batch_size, lr):
    assert math.isclose(scaled_lr(batch_size), lr, rel_tol=1e-5)


def test_a_given_learning_rate_is_not_scaled():
    assert OptimizerConfig(lr=1e-3).peak_lr(batch_size=64) == 1e-3
    assert OptimizerConfig(lr="auto").peak_lr(batch_size=64) == scaled_lr(64)


def test_a_rate_that_yaml_reads_as_a_word_is_a_number():
    assert OptimizerConfig(lr="1e-3").lr == 1e-3


@pytest.mark.parametrize(
    "num_steps, warmup_steps",
    [(125_000, 3125), (4000, 100), (1000, 100), (200, 20), (20, 2), (9, 0)],
)
def test_the_default_warmup_is_the_papers_share_and_enough_for_short_runs(num_steps, warmup_steps):
    assert default_warmup_steps(num_steps) == warmup_steps
    assert OptimizerConfig().warmup_for(num_steps) == warmup_steps


def test_a_chosen_warmup_is_kept_even_if_it_is_zero():
    assert OptimizerConfig(warmup_steps=0).warmup_for(1000) == 0
    assert OptimizerConfig(warmup_steps=7).warmup_for(7) == 7


def test_a_warmup_longer_than_the_run_is_refused_with_both_numbers():
    with pytest.raises(InputError, match="warmup_steps=100, num_steps=99"):
        OptimizerConfig(warmup_steps=100).warmup_for(99)


@pytest.mark.parametrize("lr", [0, -1e-3, math.nan, math.inf, True, None, "fast"])
def test_an_unusable_learning_rate_is_one_problem_that_names_both_choices(lr):
    with pytest.raises(SettingsError, match='`lr` must be a positive number or "auto"') as raised:
        OptimizerConfig(lr=lr)
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize("lr", [1001, "3e38", 1e300])
def test_a_learning_rate_that_overflows_is_refused(lr):
    assert OptimizerConfig(lr=1000).lr == 1000
    with pytest.raises(SettingsError, match="`lr` must be at most 1,000: no training converges"):
        OptimizerConfig(lr=lr)


@pytest.mark.parametrize(
    "field, value",
    [
        ("name", "sgd"),
        ("beta_1", 1.0),
        ("beta_2", -0.1),
        ("epsilon", 0.0),
        ("weight_decay", -0.01),
        ("clip_norm", 0.0),
        ("warmup_steps", -1),
        ("exclude_patterns", ["("]),
    ],
)
def test_an_unusable_value_is_refused_under_its_name(field, value):
    with pytest.raises(SettingsError, match=f"`{field}"):
        OptimizerConfig(**{field: value})


def test_a_config_survives_json():
    config = OptimizerConfig(name="adamw", lr=2e-5, clip_norm=None, exclude_patterns=["bias$"])
    assert OptimizerConfig(**config.model_dump(mode="json")) == config


@pytest.mark.parametrize("lr, batch_size", [(1.76e-3, 64), (1e-5, 4096)])
def test_a_rate_far_from_the_rule_is_reported(lr, batch_size):
    assert "--lr auto" in OptimizerConfig(lr=lr).lr_advice(batch_size)


def test_a_rate_near_the_rule_and_one_of_adamw_are_not():
    assert OptimizerConfig(lr=1e-3).lr_advice(4096) is None
    assert OptimizerConfig(lr="auto").lr_advice(64) is None
    assert OptimizerConfig(name="adamw", lr=2e-5).lr_advice(4096) is None
