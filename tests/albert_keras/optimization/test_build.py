import math

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.optimization.build import build_optimizer, clip_gradients
from albert_keras.optimization.config import OptimizerConfig, pretraining_lr
from albert_keras.optimization.lamb import AdamW, Lamb


@pytest.mark.parametrize("name, kind", [("lamb", Lamb), ("adamw", AdamW)])
def test_the_optimizer_is_the_one_configured(name, kind):
    config = OptimizerConfig(
        name=name, beta_1=0.8, beta_2=0.98, epsilon=1e-5, weight_decay=0.02, exclude_patterns=["b"]
    )
    optimizer = build_optimizer(config, num_steps=10, batch_size=8)
    assert type(optimizer) is kind
    built = optimizer.get_config()
    assert (built["beta_1"], built["beta_2"], built["epsilon"]) == (0.8, 0.98, 1e-5)
    assert (built["weight_decay"], built["exclude_from_weight_decay"]) == (0.02, ["b"])


def test_the_schedule_has_the_scaled_peak_the_runs_length_and_the_default_warmup():
    optimizer = build_optimizer(OptimizerConfig(name="lamb"), num_steps=1000, batch_size=512)
    schedule = optimizer.schedule
    assert (schedule.num_steps, schedule.warmup_steps) == (1000, 100)
    assert math.isclose(schedule(100), pretraining_lr("lamb", 512) * 0.9, rel_tol=1e-6)


def test_gradients_are_scaled_by_their_common_norm():
    gradients, norm = clip_gradients([tf.constant([3.0]), None, tf.constant([[4.0]])], 1.0)
    assert float(norm) == 5.0
    assert gradients[1] is None
    np.testing.assert_allclose(gradients[0], [0.6], rtol=1e-6)
    np.testing.assert_allclose(gradients[2], [[0.8]], rtol=1e-6)


@pytest.mark.parametrize("clip_norm", [5.5, None])
def test_small_or_unclipped_gradients_stay_as_they_are(clip_norm):
    gradients, norm = clip_gradients([tf.constant([3.0, 4.0])], clip_norm)
    assert float(norm) == 5.0
    np.testing.assert_allclose(gradients[0], [3.0, 4.0], rtol=1e-6)


def test_repeated_rows_of_sparse_gradients_are_summed_before_they_are_measured():
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), [1, 1, 0], dense_shape=[3, 1])
    gradients, norm = clip_gradients([rows], 2.5)
    assert float(norm) == 5.0
    np.testing.assert_allclose(gradients[0], [[2.0], [1.5], [0.0]], rtol=1e-6)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_bad_gradient_shows_in_the_norm_and_in_all_gradients(bad):
    gradients, norm = clip_gradients([tf.constant([bad]), tf.constant([1.0])], 1.0)
    assert not math.isfinite(norm)
    assert all(math.isnan(gradient[0]) for gradient in gradients)
