import math

import pytest

from albert_keras.optimization.config import (
    HEAD_LR,
    OptimizerConfig,
    default_warmup_steps,
    finetuning_lr,
    pretraining_lr,
)
from data_pipeline.errors import InputError
from data_pipeline.settings import SettingsError


@pytest.mark.parametrize(
    "optimizer, batch_size, hidden_size, lr",
    [
        ("lamb", 4096, 768, 1.76e-3),
        ("lamb", 64, 128, 0.01),
        ("muon", 64, 128, 0.004),
        ("muon", 512, 256, 0.003),
        ("muon", 64, 768, 0.001),
        ("adamw", 64, 256, 0.001),
    ],
)
def test_the_rate_of_pre_training_follows_optimizer_batch_and_width(
    optimizer, batch_size, hidden_size, lr
):
    assert pretraining_lr(optimizer, batch_size, hidden_size) == pytest.approx(lr)
    config = OptimizerConfig(name=optimizer).resolved(batch_size, hidden_size)
    assert (config.name, config.lr) == (optimizer, pytest.approx(lr))
    assert OptimizerConfig(name=optimizer, lr=0.5).resolved(batch_size, hidden_size).lr == 0.5


@pytest.mark.parametrize(
    "batch_size, on_tpu, name", [(1023, False, "muon"), (1024, False, "lamb"), (8, True, "lamb")]
)
def test_the_default_is_lamb_for_large_batches_and_on_tpus(batch_size, on_tpu, name):
    config = OptimizerConfig().resolved(batch_size, 768, on_tpu)
    assert (config.name, config.beta_2) == (name, 0.98 if name == "muon" else 0.999)
    assert OptimizerConfig(beta_2=0.9).resolved(batch_size, 768, on_tpu).beta_2 == 0.9
    assert config.resolved(8, 32) == config


def test_small_models_are_fine_tuned_at_a_higher_rate():
    assert finetuning_lr(768) == finetuning_lr(4096) == 2e-5
    assert finetuning_lr(384) == pytest.approx(5.657e-5, rel=1e-3)
    assert finetuning_lr(32) == finetuning_lr(768, freeze_encoder=True) == HEAD_LR == 1e-3


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
    with pytest.raises(InputError, match="must not exceed the steps of the run, 99. Received: 100"):
        OptimizerConfig(warmup_steps=100).warmup_for(99)


@pytest.mark.parametrize("lr", [0, math.nan, True, "fast"])
def test_an_unusable_learning_rate_is_one_problem_that_names_both_choices(lr):
    with pytest.raises(SettingsError, match='`lr` must be a positive number or "auto"') as raised:
        OptimizerConfig(lr=lr)
    assert len(raised.value.problems) == 1


def test_a_learning_rate_that_overflows_is_refused():
    assert OptimizerConfig(lr=1000).lr == 1000
    with pytest.raises(SettingsError, match="`lr` must be at most 1,000: no training converges"):
        OptimizerConfig(lr="3e38")


@pytest.mark.parametrize(
    "field, value",
    [
        ("name", "sgd"),
        ("beta_1", 1.0),
        ("clip_norm", 0.0),
        ("exclude_patterns", ["("]),
    ],
)
def test_an_unusable_value_is_refused_under_its_name(field, value):
    with pytest.raises(SettingsError, match=f"`{field}"):
        OptimizerConfig(**{field: value})


@pytest.mark.parametrize("lr, batch_size", [(1.76e-3, 64), (1e-5, 4096)])
def test_a_rate_of_lamb_far_from_its_default_is_reported(lr, batch_size):
    assert "--lr auto" in OptimizerConfig(name="lamb", lr=lr).lr_advice(batch_size)


def test_a_rate_near_the_default_and_one_of_adamw_are_not():
    assert OptimizerConfig(name="lamb", lr=1e-3).lr_advice(4096) is None
    assert OptimizerConfig(name="lamb").lr_advice(64) is None
    assert OptimizerConfig(name="adamw", lr=2e-5).lr_advice(4096) is None
