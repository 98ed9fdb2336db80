"""Checkpoints are saved when they should be, and signals and divergence lose no step."""

import os
import signal
import subprocess
import sys

import pytest

from albert_keras.training.run_callbacks import Progress
from albert_keras.training.saving import SaveCheckpoints

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def run(checkpoints, steps, together=1, before=lambda step: None):
    """Calls the callback as `fit` does; returns when each step is done or it is stopped."""
    progress = checkpoints.progress
    for first in range(0, steps, together):
        last = min(first + together, steps)
        progress.reach(progress.first_step + last)
        before(last)
        checkpoints.on_train_batch_end(last - 1, {})
        if progress.is_stopping:
            return


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
    steps_per_execution, first_step, last_step, every, expected
):
    saved = []
    checkpoints = SaveCheckpoints(saved.append, every, Progress(first_step, last_step))
    run(checkpoints, last_step - first_step, steps_per_execution)
    assert saved == expected
    assert checkpoints.progress.step == checkpoints.saved == last_step
    assert checkpoints.stopped_by is None and not checkpoints.progress.is_stopping


# Ending early.


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_finishes_the_step_saves_and_stops(number, caplog):
    saved = []
    with SaveCheckpoints(saved.append, 100, Progress(0, 9)) as checkpoints:
        run(checkpoints, 9, before=lambda step: step == 4 and os.kill(os.getpid(), number))
    assert saved == [4] and checkpoints.stopped_by == number and checkpoints.progress.is_stopping
    assert "Stopping after this step and saving" in caplog.text


# The second signal.

ENDLESS = """
import os, signal, sys
import tensorflow as tf
import keras
from albert_keras.training.run_callbacks import Progress
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
with SaveCheckpoints(print, 2, Progress(0, 9)) as saving:
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
