"""Checkpoints are saved when they should be, and signals and time limits lose no step."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.training.loop.saving import SaveCheckpoints

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
        (1, 0, 6, 3, [3, 6]),
        (1, 4, 9, 3, [6, 9]),
        (1, 0, 2, 5, [2]),
        (4, 0, 12, 4, [4, 8, 12]),
        (4, 0, 12, 5, [8, 12]),  # 5 is passed at 8, 10 at 12
        (4, 0, 16, 2, [4, 8, 12, 16]),  # several multiples at once are one checkpoint
        (4, 0, 10, 100, [10]),  # the last execution has two steps
        (4, 2, 12, 6, [6, 12]),
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
    assert (checkpoints.stopped_by, checkpoints.time_is_up, checkpoints.stopping) == (
        None,
        False,
        False,
    )


def test_steps_go_on_from_epoch_to_epoch(saved):
    fit(SaveCheckpoints(saved, 4, 10, 16), 6, epochs=2)
    assert saved == [12, 16]


def test_saving_now_saves_each_step_once(saved):
    checkpoints = SaveCheckpoints(saved, 4, 0, 6)
    checkpoints.save_now()
    assert saved == []  # nothing is done yet
    fit(checkpoints, 6, at_step(4, checkpoints.save_now), at_step(6, checkpoints.save_now))
    checkpoints.save_now()
    # The other callback comes first and still sees the step before.
    assert saved == [3, 4, 5, 6]


def test_a_save_that_fails_ends_training(saved):
    def fail(step):
        raise OSError(28, "No space left on device", "somewhere")

    checkpoints = SaveCheckpoints(fail, 2, 0, 6)
    with pytest.raises(OSError, match="No space left on device: 'somewhere'"):
        fit(checkpoints, 6)
    assert (checkpoints.step, checkpoints.saved) == (2, 0)


# Ending early.


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_finishes_the_step_saves_and_stops(saved, number, caplog):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    fit(checkpoints, 9, at_step(4, send, number))
    assert saved == [4] and checkpoints.stopped_by == number and checkpoints.stopping
    assert "Stopping after this step and saving" in caplog.text


def test_a_signal_within_an_execution_of_several_steps_saves_where_that_ends(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 20)
    fit(checkpoints, 20, at_step(8, send, signal.SIGTERM), steps_per_execution=4)
    assert saved == [8]


def test_a_signal_during_the_building_of_the_graph_is_honoured_after_the_first_step(saved):
    class WhileTracing(keras.layers.Layer):
        def call(self, inputs):
            if checkpoints.stopped_by is None:  # Keras traces more than once
                send(signal.SIGTERM)
            return inputs

    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    model = keras.Sequential([keras.layers.Dense(1), WhileTracing()])
    model.compile("sgd", "mse")
    with checkpoints:
        model.fit(np.ones([18, 3]), np.ones(18), batch_size=2, callbacks=[checkpoints], verbose=0)
    assert saved == [1] and checkpoints.stopped_by == signal.SIGTERM


def test_a_signal_before_fit_is_honoured_after_the_first_step(saved):
    checkpoints = SaveCheckpoints(saved, 100, 5, 9)
    with checkpoints as entered:
        assert entered is checkpoints
        send(signal.SIGTERM)
        fit_within(checkpoints, 4)
    assert saved == [6] and checkpoints.stopped_by == signal.SIGTERM


def test_after_the_first_signal_the_system_ends_the_process(saved):
    during = []

    def look():
        during.extend(signal.getsignal(number) for number in SIGNALS)

    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    fit(checkpoints, 9, at_step(2, send, signal.SIGINT), at_step(2, look))
    assert during == [signal.SIG_DFL, signal.SIG_DFL]


def test_handlers_are_handed_back_when_fit_fails(saved):
    def fail():
        raise RuntimeError("in between")

    checkpoints = SaveCheckpoints(saved, 2, 0, 9)
    with pytest.raises(RuntimeError):
        fit(checkpoints, 9, at_step(3, fail))


def test_another_thread_trains_without_signals(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 3)
    thread = threading.Thread(target=fit, args=(checkpoints, 3))
    thread.start()
    thread.join(60)
    assert saved == [3]


def test_a_time_limit_saves_and_stops(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9, time_limit=1e-6)
    fit(checkpoints, 9)
    assert saved == [1] and checkpoints.time_is_up and checkpoints.stopping
    assert checkpoints.stopped_by is None


def test_another_callback_can_ask_to_save_and_stop(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    fit(checkpoints, 9, at_step(3, checkpoints.ask_to_stop))
    assert saved == [3] and checkpoints.stopping and checkpoints.stopped_by is None


def test_the_last_step_may_be_changed(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9)
    fit(checkpoints, 5, at_step(3, setattr, checkpoints, "last_step", 5))
    assert saved == [5]


def test_others_that_stop_training_are_not_overruled(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 9)

    def stop():
        checkpoints.model.stop_training = True

    fit(checkpoints, 9, at_step(3, stop))
    assert checkpoints.step == 3


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


def test_a_worker_does_not_stop_alone(saved):
    checkpoints = SaveCheckpoints(saved, 100, 0, 6, agree=lambda wish: wish and False)
    fit(checkpoints, 6, at_step(2, send, signal.SIGTERM))
    assert saved == [6] and checkpoints.stopped_by == signal.SIGTERM and not checkpoints.stopping


# The second signal.

ENDLESS = """
import os, signal, sys
import tensorflow as tf
from tensorflow import keras
from albert_keras.training.loop.saving import SaveCheckpoints

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


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_the_process_within_a_step(number):
    """In a step that never ends; a shell reports 128 plus the signal's number."""
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
