import math

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.optimization.build import build_optimizer, clip_gradients
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.optimization.lamb import AdamW, Lamb


@pytest.mark.parametrize("name, kind", [("lamb", Lamb), ("adamw", AdamW)])
def test_optimizer_and_schedule_are_those_configured(name, kind):
    config = OptimizerConfig(name=name, beta_1=0.8, beta_2=0.98, epsilon=1e-5, weight_decay=0.02)
    optimizer = build_optimizer(config.replace(lr=0.5), num_steps=1000)
    assert type(optimizer) is kind
    built, schedule = optimizer.get_config(), optimizer.schedule
    assert (built["beta_1"], built["beta_2"], built["epsilon"]) == (0.8, 0.98, 1e-5)
    assert built["weight_decay"] == 0.02
    assert (schedule.num_steps, schedule.warmup_steps) == (1000, 100)
    assert math.isclose(schedule(100), 0.5 * 0.9, rel_tol=1e-6)


@pytest.mark.parametrize("given", [{"name": "lamb"}, {"lr": 0.1}])
def test_auto_is_not_resolved_without_the_model(given):
    with pytest.raises(ValueError, match="must be resolved"):
        build_optimizer(OptimizerConfig(**given), num_steps=10)


@pytest.mark.parametrize("clip_norm, expected", [(1.0, [0.6, 0.8]), (5.5, [3, 4]), (None, [3, 4])])
def test_gradients_are_scaled_down_by_their_common_norm(clip_norm, expected):
    given = [tf.constant(3.0), tf.constant(4.0)]
    found = clip_gradients(given, clip_norm, tf.constant(5.0), tf.constant(True))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("norm, is_usable", [(math.inf, True), (math.nan, True), (1.0, False)])
def test_what_must_not_be_applied_shows_in_all_gradients(norm, is_usable):
    given = [tf.constant(1.0), tf.constant(2.0)]
    found = clip_gradients(given, 1.0, tf.constant(norm), tf.constant(is_usable))
    assert np.isnan(found).all()
