"""Of each batch only the records with the highest loss are trained on, on every replica alike."""

import types

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.training.batches import check_batch_size
from albert_keras.training.config import TrainingConfig
from data_pipeline.errors import InputError
from tests.albert_keras.models.test_objective_model import B, Received, assert_same, batch, build


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
    hardest = {name: tf.gather(values, chosen) for name, values in features.items()}
    expected = alone.train_step(hardest)
    step = build(optimizer=Received(), clip_norm=None, hard_examples=0.5, accumulation_steps=parts)
    logs = step.train_step(features)
    assert_same(step.optimizer.given, alone.optimizer.given)
    whole = build(hard_examples=0.5).test_step(features)
    assert "candidate_loss" not in whole
    np.testing.assert_allclose(logs["candidate_loss"], whole["loss"], rtol=1e-5)
    assert logs["loss"] > logs["candidate_loss"]
    for name in ("masked_lm_loss", "tokens"):
        np.testing.assert_allclose(logs[name], expected[name], rtol=1e-5)


@pytest.mark.parametrize(
    "settings", [{"hard_examples": 0.3}, {"hard_examples": 0.25, "accumulation_steps": 2}]
)
def test_a_choice_that_cannot_be_split_evenly_is_refused(settings):
    two = types.SimpleNamespace(num_replicas_in_sync=2)
    with pytest.raises(InputError, match="hard_examples` must choose a positive multiple"):
        check_batch_size(two, TrainingConfig(batch_size=8, **settings))
    check_batch_size(two, TrainingConfig(batch_size=8, hard_examples=0.5))
