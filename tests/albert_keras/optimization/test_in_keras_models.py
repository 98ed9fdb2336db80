"""In models of Keras, our optimizers do what those of Keras do."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.optimization.build import check_schedule
from albert_keras.optimization.lamb import AdamW, Lamb
from albert_keras.optimization.muon import Muon
from albert_keras.optimization.schedules import WarmupPolynomialDecay
from tests.keras_line import IS_KERAS_3
from tests.parameters import slow

OPTIMIZERS = [Lamb, AdamW, Muon]
TRIED = [Lamb, *slow(AdamW, Muon)]
RNG = np.random.default_rng(0)
X, IDS = RNG.normal(size=(32, 6)).astype("float32"), RNG.integers(0, 10, (32, 5))
Y = 2 * X[:, :2] + 1
#: Settings that only Keras 3 has.
OF_KERAS_3 = [{"gradient_accumulation_steps": 3}, {"loss_scale_factor": 8.0}] * IS_KERAS_3


def layer(size):
    start = keras.initializers.GlorotUniform(seed=size)
    return keras.layers.Dense(size, kernel_initializer=start)


def dense():
    return keras.Sequential([keras.Input((6,)), layer(4), layer(2)])


def embedding():
    start = keras.initializers.RandomUniform(seed=1)
    table = keras.layers.Embedding(10, 4, embeddings_initializer=start)
    return keras.Sequential([table, keras.layers.GlobalAveragePooling1D(), layer(2)])


def losses(model, epochs=2, x=X, **kwargs):
    fitted = model.fit(x, Y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, **kwargs)
    return fitted.history["loss"]


def trained(optimizer, model=dense, **kwargs):
    model = model()
    model.compile(optimizer, "mse")
    return model, losses(model, **kwargs)


@pytest.mark.parametrize("optimizer", TRIED)
@pytest.mark.parametrize(
    "settings",
    [
        {"weight_decay": 0.02, "exclude_from_weight_decay": ["bias"]},
        {"learning_rate": keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)},
        {"use_ema": True, "ema_overwrite_frequency": 3},
        *OF_KERAS_3,
    ],
    ids="-".join,
)
def test_a_saved_training_goes_on_as_if_it_had_not_stopped(optimizer, settings, tmp_path):
    model, _ = trained(optimizer(**{"learning_rate": 0.01} | settings))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.optimizer.get_config() == model.optimizer.get_config()
    assert losses(again) == losses(model)


@pytest.mark.parametrize("optimizer", TRIED)
def test_saved_weights_fit_a_model_whose_layers_have_other_names(optimizer, tmp_path):
    model, _ = trained(optimizer(0.01))
    model.optimizer.learning_rate = 0.02
    model.save_weights(tmp_path / "model.weights.h5")
    again = dense()
    again.compile(optimizer(0.01), "mse")
    again.optimizer.build(again.trainable_variables)
    again.load_weights(tmp_path / "model.weights.h5")
    assert losses(again) == losses(model)


def test_moments_of_weights_of_equal_names_are_kept_apart(tmp_path):
    def part():
        inner = keras.Input((6,))
        return keras.Model(inner, keras.layers.Dense(6, name="same")(inner))

    inputs = keras.Input((6,))
    outputs = keras.layers.Dense(2)(part()(part()(inputs)))
    model, _ = trained(Lamb(0.01), lambda: keras.Model(inputs, outputs))
    model.save(tmp_path / "model.keras")
    assert losses(keras.models.load_model(tmp_path / "model.keras")) == losses(model)


@pytest.mark.parametrize("optimizer", TRIED)
def test_the_rate_is_a_number_a_function_or_what_a_callback_sets(optimizer):
    expected = trained(optimizer(0.5))[1]
    assert trained(optimizer(lambda: 0.5))[1] == expected
    set_half = keras.callbacks.LearningRateScheduler(lambda epoch: 0.5)
    assert trained(optimizer(1), callbacks=[set_half])[1] == expected
    lower = keras.callbacks.ReduceLROnPlateau("loss", patience=1, min_delta=1e9)
    model, _ = trained(optimizer(1), callbacks=[lower])
    assert float(model.optimizer.learning_rate) == pytest.approx(0.1)


@pytest.mark.parametrize("optimizer", TRIED)
def test_gradients_of_tables_are_clipped_and_applied(optimizer):
    expected = trained(optimizer(0.01, global_clipnorm=1e9), embedding, x=IDS)[1]
    assert trained(optimizer(0.01, global_clipnorm=None), embedding, x=IDS)[1] == expected
    clipped = trained(optimizer(0.01, global_clipnorm=1e-6), embedding, x=IDS)[1]
    assert clipped != pytest.approx(expected, rel=1e-4) and clipped[1] < clipped[0]


@pytest.mark.parametrize("optimizer", TRIED)
def test_a_loss_scale_of_keras_changes_nothing(optimizer):
    expected = trained(optimizer(0.01))[1]
    scaled = keras.mixed_precision.LossScaleOptimizer(optimizer(0.01))
    assert trained(scaled)[1] == pytest.approx(expected, rel=1e-6)
    policy = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model, half = trained(optimizer(0.01))
    finally:
        keras.mixed_precision.set_global_policy(policy)
    assert "LossScale" in type(model.optimizer).__name__
    assert expected[1] < half[1] < half[0]  # the first updates overflow and are skipped


@pytest.mark.skipif(not IS_KERAS_3, reason="a setting of Keras 3")
@pytest.mark.parametrize("optimizer", TRIED)
def test_accumulated_batches_are_one_update(optimizer):
    model = dense()
    model.compile(optimizer(0.01, gradient_accumulation_steps=4), "mse")
    losses(model, epochs=1)
    whole = dense()
    whole.compile(optimizer(0.01), "mse")
    whole.fit(X, Y, batch_size=32, verbose=0)
    for ours, theirs in zip(model.weights, whole.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


#: Prints the losses with two replicas and with one, for some settings.
REPLICAS = """
import json, sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.albert_keras.optimization.test_in_keras_models import *
cases = [(each, dense, X, {"global_clipnorm": 0.01}) for each in OPTIMIZERS]
cases += [(Lamb, embedding, IDS, {}), (Lamb, dense, X, {"use_ema": True})]
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for optimizer, build, x, settings in cases:
    for strategy in (two, tf.distribute.get_strategy()):
        with strategy.scope():
            print(json.dumps(trained(optimizer(0.01, **settings), build, x=x)[1]))
"""


@pytest.mark.slow
def test_two_replicas_sum_and_then_clip():
    found = subprocess.run([sys.executable, "-c", REPLICAS], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-3000:]
    rows = [*map(json.loads, found.stdout.splitlines())]
    assert len(rows) == 10
    for two, one in zip(rows[::2], rows[1::2], strict=True):
        assert two == pytest.approx(one, rel=1e-5)


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2.15 accumulates no gradients")
@pytest.mark.parametrize("make, last", [(Lamb, 4), (keras.optimizers.Adam, 2)])
def test_a_schedule_has_ended_where_the_rate_is_zero(make, last):
    schedule = WarmupPolynomialDecay(0.1, num_steps=2)
    optimizer = make(schedule, gradient_accumulation_steps=2)
    weight = keras.Variable(1.0)
    for _ in range(last):
        check_schedule(optimizer)
        assert float(optimizer.learning_rate) > 0
        optimizer.apply([tf.constant(1.0)], [weight])
    assert float(optimizer.learning_rate) == 0
    with pytest.raises(ValueError, match="has ended"):
        check_schedule(optimizer)
