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


@pytest.mark.parametrize(
    "batch_size, on_tpu, name", [(1023, False, "muon"), (1024, False, "lamb"), (8, True, "lamb")]
)
def test_the_default_is_lamb_for_large_batches_and_on_tpus(batch_size, on_tpu, name):
    config = OptimizerConfig().resolved(batch_size, 768, on_tpu)
    assert (config.name, config.beta_2) == (name, 0.98 if name == "muon" else 0.999)
    assert config.resolved(8, 32) == config


def test_small_models_are_fine_tuned_at_a_higher_rate():
    assert finetuning_lr("adamw", 768) == finetuning_lr("adamw", 4096) == 2e-5
    assert finetuning_lr("adamw", 384) == pytest.approx(5.657e-5, rel=1e-3)
    assert finetuning_lr("adamw", 32) == finetuning_lr("adamw", 768, True) == HEAD_LR == 1e-3
    assert finetuning_lr("lamb", 32) == finetuning_lr("lamb", 1024) == 1e-3


@pytest.mark.parametrize(
    "num_steps, warmup_steps", [(125_000, 3125), (4000, 100), (1000, 100), (20, 2), (9, 0)]
)
def test_the_default_warmup_is_the_papers_share_and_enough_for_short_runs(num_steps, warmup_steps):
    assert default_warmup_steps(num_steps) == warmup_steps
    assert OptimizerConfig().warmup_for(num_steps) == warmup_steps


def test_a_chosen_warmup_is_kept_or_refused_with_both_numbers():
    assert OptimizerConfig(warmup_steps=0).warmup_for(1000) == 0
    assert OptimizerConfig(warmup_steps=7).warmup_for(7) == 7
    with pytest.raises(InputError, match="must not exceed the steps of the run, 99. Received: 100"):
        OptimizerConfig(warmup_steps=100).warmup_for(99)


@pytest.mark.parametrize(
    "field, value, message",
    [
        *(
            ("lr", value, 'must be a positive number or "auto"')
            for value in (0, math.nan, True, "x")
        ),
        ("lr", "3e38", "must be at most 1,000: no training converges"),
        ("name", "sgd", ""),
        ("beta_1", 1.0, ""),
        ("clip_norm", 0.0, ""),
    ],
)
def test_an_unusable_value_is_one_problem_under_its_name(field, value, message):
    with pytest.raises(SettingsError, match=f"`{field}.*{message}") as raised:
        OptimizerConfig(**{field: value})
    assert len(raised.value.problems) == 1
