"""Checkpoints are saved when they should be, and signals lose no step."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.training.saving import SaveCheckpoints

SIGNALS = [signal.SIGTERM, signal.SIGINT]


class Saved(list):
    """Notes the steps that are saved."""

    def __call__(self, step):
        self.append(step)


@pytest.fixture
def saved():
    return Saved()


@pytest.fixture(autouse=True)
def signals_are_handed_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


def small_model(steps_per_execution=1):
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse", steps_per_execution=steps_per_execution)
    return model


def fit(checkpoints, steps, *others, **options):
    with checkpoints:
        fit_within(checkpoints, steps, *others, **options)


def fit_within(checkpoints, steps, *others, steps_per_execution=1, epochs=1):
    data = tf.data.Dataset.from_tensors((np.ones([2, 3]), np.ones([2, 1]))).repeat()
    small_model(steps_per_execution).fit(
        data,
        epochs=epochs,
        steps_per_epoch=steps // epochs,
        callbacks=[*others, checkpoints],
        verbose=0,
    )


def at_step(step, action, *args):
    """Returns a callback that acts at the end of an execution that does a step, from 1 on."""

    def act(batch, logs):
        if batch + 1 == step:
            action(*args)

    return keras.callbacks.LambdaCallback(on_batch_end=act)


def send(number):
    os.kill(os.getpid(), number)


# When a checkpoint is saved.


@pytest.mark.parametrize(
    "steps_per_execution, first_step, last_step, every, expected",
    [
        (1, 0, 7, 3, [3, 6, 7]),
        (1, 4, 9, 3, [6, 9]),
        (4, 0, 12, 5, [8, 12]),  # 5 is passed at 8, 10 at 12
        (4, 0, 16, 2, [4, 8, 12, 16]),  # several multiples at once are one checkpoint
        (4, 0, 10, 100, [10]),  # the last execution has two steps
        (3, 1, 11, 5, [7, 10, 11]),
    ],
)
def test_saved_where_a_multiple_is_reached_or_passed_and_at_the_end(
    saved, steps_per_execution, first_step, last_step, every, expected
):
    checkpoints = SaveCheckpoints(saved, every, first_step, last_step)
    fit(checkpoints, last_step - first_step, steps_per_execution=steps_per_execution)
    assert saved == expected
    assert checkpoints.step == checkpoints.saved == last_step
    assert checkpoints.stopped_by is None and not checkpoints.stopping


# Ending early.


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_finishes_the_step_saves_and_stops(saved, number, caplog):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    fit(checkpoints, 9, at_step(4, send, number))
    assert saved == [4] and checkpoints.stopped_by == number and checkpoints.stopping
    assert "Stopping after this step and saving" in caplog.text


def test_handlers_are_handed_back_when_fit_fails(saved):
    def fail():
        raise RuntimeError("in between")

    checkpoints = SaveCheckpoints(saved, 2, 0, 9)
    with pytest.raises(RuntimeError):
        fit(checkpoints, 9, at_step(3, fail))


# Several workers.


def test_workers_agree_once_per_execution(saved):
    wishes = []

    def agree(wish):
        wishes.append(wish)
        return wish

    fit(SaveCheckpoints(saved, 2, 0, 5, agree=agree), 5)
    assert wishes == [False] * 5
    wishes.clear()
    fit(SaveCheckpoints(saved, 2, 0, 8, agree=agree), 8, steps_per_execution=4)
    assert wishes == [False] * 2
    wishes.clear()
    fit(SaveCheckpoints(saved, 9, 0, 5, agree=agree), 5, at_step(3, send, signal.SIGTERM))
    assert wishes == [False, False, True]


def test_a_worker_stops_for_another(saved, caplog):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9, agree=lambda wish: checkpoints.step == 4)
    fit(checkpoints, 9)
    assert saved == [4] and checkpoints.stopping and checkpoints.stopped_by is None
    assert "another worker requested to stop at step 4" in caplog.text


# The second signal.

ENDLESS = """
import os, signal, sys
import tensorflow as tf
from tensorflow import keras
from albert_keras.training.saving import SaveCheckpoints

class Endless(keras.layers.Layer):
    def call(self, inputs):
        first = tf.while_loop(lambda i: i >= 0, lambda i: tf.minimum(i + 1, 5), [0])[0]
        return inputs + tf.cast(first, tf.float32)

class Begin(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        os.kill(os.getpid(), signal.SIGINT)
        print("begun", flush=True)

model = keras.Sequential([keras.layers.Dense(1), Endless()])
model.compile("sgd", "mse")
with SaveCheckpoints(print, 2, 0, 9) as saving:
    model.fit(tf.ones([8, 3]), tf.ones([8, 1]), verbose=0, callbacks=[Begin(), saving])
"""


def test_a_second_signal_ends_the_process_within_a_step():
    """In a step that never ends; a shell reports 128 plus the signal's number."""
    number = signal.SIGTERM
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == -number and "Traceback" not in errors
