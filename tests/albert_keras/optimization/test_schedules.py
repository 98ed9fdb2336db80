import math

import keras
import pytest
import tensorflow as tf

from albert_keras.optimization.schedules import WarmupPolynomialDecay

PAPER = {"learning_rate": 0.00176, "num_steps": 125_000, "warmup_steps": 3125}


@pytest.mark.parametrize(
    "step, rate",
    [
        (0, 0.0),
        (1, 5.632e-7),
        (3124, 1.7594368e-3),
        (3125, 1.716e-3),
        (125_000, 0.0),
        (200_000, 0.0),
    ],
)
@pytest.mark.parametrize("form", [int, tf.constant, lambda step: tf.constant(step, tf.float32)])
def test_the_papers_schedule_has_the_references_values(step, rate, form):
    value = WarmupPolynomialDecay(**PAPER)(form(step))
    assert value.dtype == tf.float32
    assert math.isclose(value, rate, rel_tol=1e-6)


def test_decay_may_start_at_the_peak_where_warmup_ends():
    schedule = WarmupPolynomialDecay(1.0, num_steps=12, warmup_steps=2, decay_from_warmup_end=True)
    rates = [float(schedule(step)) for step in (0, 1, 2, 7, 11, 12)]
    assert rates == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.1, 0.0])


def test_the_rate_is_zero_and_never_negative_before_a_late_warmup():
    schedule = WarmupPolynomialDecay(1.0, num_steps=20, warmup_steps=4, start_warmup_step=6)
    rates = [float(schedule(step)) for step in (0, 5, 6, 8, 10)]
    assert rates == pytest.approx([0.0, 0.0, 0.0, 0.5, 0.5])


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32])
def test_the_last_steps_of_a_long_run_keep_their_digits(dtype):
    schedule = WarmupPolynomialDecay(1.0, num_steps=10_000_000)
    assert math.isclose(schedule(tf.constant(9_999_999, dtype)), 1e-7, rel_tol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_steps": 0},
        {"num_steps": 10, "warmup_steps": -1},
        {"num_steps": 10, "warmup_steps": 11},
        {"num_steps": 10, "warmup_steps": 5, "start_warmup_step": 6},
    ],
)
def test_impossible_steps_are_refused(arguments):
    with pytest.raises(ValueError, match="warmup_steps"):
        WarmupPolynomialDecay(1.0, **arguments)


def test_a_traced_graph_follows_a_new_end():
    schedule = WarmupPolynomialDecay(1.0, num_steps=100, warmup_steps=10, adjustable=True)
    traced = tf.function(schedule)
    assert float(traced(tf.constant(50, tf.int64))) == 0.5
    schedule.set_num_steps(200)
    assert float(traced(tf.constant(50, tf.int64))) == 0.75
    assert float(schedule(5)) == 0.5  # the warm-up stays
    schedule.set_num_steps(50)
    assert float(traced(tf.constant(50, tf.int64))) == 0.0
    assert schedule.num_steps == schedule.get_config()["num_steps"] == 50


def test_an_adjustable_schedule_is_rebuilt_at_its_present_length():
    schedule = WarmupPolynomialDecay(1.0, 20, 4, adjustable=True)
    schedule.set_num_steps(30)
    written = keras.optimizers.schedules.serialize(schedule)
    rebuilt = keras.optimizers.schedules.deserialize(written)
    assert rebuilt.get_config() == schedule.get_config() and rebuilt.num_steps == 30
    rebuilt.set_num_steps(40)
    assert float(schedule(15)) == 0.5
