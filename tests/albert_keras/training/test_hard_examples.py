"""Of each batch only the records with the highest loss are trained on, on every replica alike."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.training.config import TrainingConfig
from albert_keras.training.hard_examples import check_hard_examples, hardest
from albert_keras.training.loop.log_file import read_log
from albert_keras.training.pretrain import pretrain
from data_pipeline.errors import InputError
from tests.albert_keras.checkpoint_tensors import tensors_of
from tests.albert_keras.training.loop.test_step import B, Received, assert_same, batch, build


def losses_alone(step, features):
    """Returns the loss of each record, as a batch of its own."""
    losses = []
    for row in range(B):
        step.reset_metrics()
        alone = {name: values[row : row + 1] for name, values in features.items()}
        losses.append(float(step.test_step(alone)["loss"]))
    return losses


@pytest.mark.parametrize("parts", [1, 2])
def test_a_step_is_one_on_the_hardest_records_alone(parts):
    features = batch()
    losses = losses_alone(build(), features)
    chosen = sorted(np.argsort(losses)[-4:])
    alone = build(optimizer=Received(), clip_norm=None)
    alone.train_step({name: tf.gather(values, chosen) for name, values in features.items()})
    step = build(optimizer=Received(), clip_norm=None, hard_examples=0.5, accumulation_steps=parts)
    logs = step.train_step(features)
    assert_same(step.optimizer.given, alone.optimizer.given)
    whole = build(hard_examples=0.5).test_step(features)
    assert "candidate_loss" not in whole
    np.testing.assert_allclose(logs["candidate_loss"], whole["loss"], rtol=1e-5)
    assert logs["loss"] > logs["candidate_loss"]
    for name in ("masked_lm_loss", "tokens"):
        np.testing.assert_allclose(logs[name], alone._results()[name], rtol=1e-5)


def test_without_it_nothing_is_added():
    assert "candidate_loss" not in build().train_step(batch())
    assert not any("candidate" in name for name in build().state)


def test_records_stay_in_order_and_a_loss_that_is_not_finite_is_not_hidden():
    features = {"number": tf.range(5)}
    losses = tf.constant([1.0, 4.0, np.nan, 3.0, 2.0])
    assert hardest(features, losses, 3)["number"].numpy().tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "settings", [{"hard_examples": 0.3}, {"hard_examples": 0.25, "accumulation_steps": 2}]
)
def test_a_choice_that_cannot_be_split_evenly_is_refused(settings):
    with pytest.raises(InputError, match="hard_examples` must choose a positive multiple"):
        check_hard_examples(2, TrainingConfig(batch_size=8, **settings))
    check_hard_examples(2, TrainingConfig(batch_size=8, hard_examples=0.5))


@pytest.mark.slow  # three runs; the choice itself depends on batch and weights alone
def test_an_interrupted_run_ends_in_the_same_weights(tiny_records, tiny_training, tmp_path):
    training = tiny_training.training.replace(hard_examples=0.5, steps=6, checkpoint_every=3)
    config = tiny_training.replace(training=training)
    whole = pretrain(tiny_records, tmp_path / "whole", config).path
    pretrain(tiny_records, tmp_path / "parts", config, max_steps=3)
    parts = pretrain(tiny_records, tmp_path / "parts", config)
    assert parts.resumed_from == 3
    found, wanted = tensors_of(parts.path, 6), tensors_of(whole, 6)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    ours, theirs = read_log(parts.path)[-1], read_log(whole)[-1]
    assert ours["candidate_loss"] == theirs["candidate_loss"] < theirs["loss"]
