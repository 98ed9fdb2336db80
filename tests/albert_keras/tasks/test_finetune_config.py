"""Settings of a fine-tuning: their defaults and their precedence."""

import pytest
import yaml

from albert_keras import recipes
from albert_keras.optimization.config import HEAD_LR, FinetuneOptimizer
from albert_keras.tasks.finetune_config import FinetuneConfig, FinetuneTraining
from albert_keras.tasks.kinds import build_task
from data_pipeline.errors import InputError


def resolved(num_examples=1000, num_dev=100, **training):
    return FinetuneTraining(**training).resolved(num_examples, "float32", num_dev)


def of_recipe(name, **flags):
    values = yaml.safe_load(recipes.path(name, "finetuning").read_text())
    return FinetuneConfig.of(values, **flags)


def test_the_default_is_three_epochs_or_250_updates_and_ten_evaluations():
    training = resolved(num_examples=8000, batch_size=32)
    assert training.steps == 750 and training.epochs == 3
    assert training.evaluate_every == training.checkpoint_every == 75
    assert training.precision == "float32"
    training = resolved(num_examples=200, batch_size=32)
    assert training.steps == 250 and training.epochs == 40
    assert resolved(num_examples=1000, batch_size=32, epochs=3).steps == 94

    training = resolved(num_examples=64, batch_size=32, steps=5, epochs=9.0)
    assert (training.steps, training.epochs) == (5, 2.5)
    assert resolved(num_examples=64, batch_size=32, epochs=0.01).steps == 1


@pytest.mark.parametrize(("num_dev", "every"), [(2400, 25), (12000, 125), (4800, 50), (10**6, 250)])
def test_evaluations_take_no_longer_than_the_training(num_dev, every):
    training = resolved(num_examples=1000, num_dev=num_dev, batch_size=32)
    assert training.evaluate_every == every and training.checkpoint_every == 25
    chosen = resolved(num_examples=1000, num_dev=num_dev, batch_size=32, evaluate_every=7)
    assert chosen.evaluate_every == chosen.checkpoint_every == 7


def test_flags_take_precedence_over_a_recipe_and_epochs_over_its_steps():
    config = of_recipe("mrpc", batch_size=8, lr=None, data_dir="glue")
    assert (config.training.batch_size, config.training.steps) == (8, 800)
    assert (config.optimizer.lr, config.optimizer.warmup_steps) == (2e-5, 200)
    assert (config.task.name, config.task.data_dir) == ("mrpc", "glue")
    assert of_recipe("mrpc", epochs=2).training.resolved(3668, "float32").steps == 230
    assert of_recipe("mrpc", epochs=2, steps=11).training.steps == 11
    config = of_recipe("mrpc").with_flags(epochs=1.0)
    assert config.training.steps is None and config.training.batch_size == 32


def test_the_default_warm_up_is_a_tenth_of_the_run():
    optimizer = FinetuneOptimizer()
    assert [optimizer.warmup_for(steps) for steps in (5, 100, 30_000)] == [0, 10, 3000]


def test_the_default_optimizer_follows_the_hidden_size_and_a_head_alone_has_its_own():
    def of(size, optimizer=None, **flags):
        config = FinetuneConfig.of({"optimizer": optimizer or {}}, task="rte", **flags)
        done = config.resolved(build_task(config.task), size, 100, "float32").optimizer
        return done.name, done.lr

    assert of(128) == of(384) == of(384, {"name": "lamb"}) == ("lamb", 1e-3)
    assert of(768) == of(4096) == ("adamw", 2e-5)
    assert of(384, lr="3e-3") == ("lamb", 3e-3)
    assert of(384, {"name": "adamw"}) == ("adamw", pytest.approx(5.657e-5, rel=1e-3))
    assert of(128, freeze_encoder=True) == of(4096, freeze_encoder=True) == ("adamw", HEAD_LR)


def test_muon_has_the_same_decay_rate_in_the_record_as_in_training():
    for given, expected in (({}, 0.98), ({"beta_2": 0.999}, 0.999)):
        config = FinetuneConfig.of({"optimizer": {"name": "muon"} | given}, task="rte")
        done = config.resolved(build_task(config.task), 128, 100, "float32").optimizer
        assert (done.name, done.beta_2) == ("muon", expected)


@pytest.mark.parametrize(
    "seeds, expected", [(2, (5, 6)), ("2", (5, 6)), ((9, 3), (9, 3)), ("9,3", (9, 3))]
)
def test_seeds_are_a_number_or_a_list(seeds, expected):
    assert FinetuneConfig.of({}, task="rte", seed=5).seeds_of(seeds) == expected


@pytest.mark.parametrize("seeds", [0, (), (1, 1), "x", 12345])
def test_seeds_that_are_none_or_too_many_are_refused(seeds):
    with pytest.raises(InputError, match="`seeds` must be"):
        FinetuneConfig.of({}, task="rte").seeds_of(seeds)
