"""Checkpoints are saved when they should be, and signals and divergence lose no step."""

import json
import os
import signal
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.training.run_callbacks import Progress, RunCallbacks
from albert_keras.training.saving import SaveCheckpoints, StopWhenDiverged

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


def test_fit_gives_the_last_step_of_an_execution():
    """By which the steps are counted; handlers are handed back when `fit` fails."""
    model = keras.Sequential([keras.layers.Dense(1, use_bias=False)])
    model.compile("sgd", "mse", steps_per_execution=4)
    data = tf.data.Dataset.from_tensors((np.ones([2, 3]), np.ones([2, 1]))).repeat()
    before, saved = [signal.getsignal(number) for number in SIGNALS], []
    progress = Progress(0, 12)
    checkpoints = SaveCheckpoints(saved.append, 5, progress)
    callbacks = RunCallbacks(progress, [], [], [checkpoints], 100)
    with pytest.raises(ZeroDivisionError), checkpoints:
        model.fit(data, steps_per_epoch=12, callbacks=[callbacks], verbose=0, shuffle=False)
        assert saved == [8, 12]
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in SIGNALS] == before


# Ending early.


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_finishes_the_step_saves_and_stops(number, caplog):
    saved = []
    with SaveCheckpoints(saved.append, 100, Progress(0, 9)) as checkpoints:
        run(checkpoints, 9, before=lambda step: step == 4 and os.kill(os.getpid(), number))
    assert saved == [4] and checkpoints.stopped_by == number and checkpoints.progress.is_stopping
    assert "Stopping after this step and saving" in caplog.text


@pytest.mark.parametrize("together, executions", [(1, 8), (4, 2)])
def test_workers_agree_once_per_execution_and_stop_for_another(together, executions, caplog):
    saved, wishes = [], []

    def agree(wish):
        wishes.append(wish)
        return len(wishes) == executions

    checkpoints = SaveCheckpoints(saved.append, 100, Progress(0, 99), agree=agree)
    run(checkpoints, 99, together)
    assert wishes == [False] * executions
    assert saved == [8] and checkpoints.progress.is_stopping and checkpoints.stopped_by is None
    assert "another worker requested to stop at step 8" in caplog.text


def test_ten_skipped_updates_in_a_row_end_the_run_and_name_their_records(tmp_path):
    saved = []
    progress = Progress(5, 99)
    saving = SaveCheckpoints(saved.append, 100, progress)
    diverged = StopWhenDiverged(tmp_path, progress, lambda step: np.r_[step, step + 1], 2, True)
    skipped = [3, 4, 0, *range(1, 11)]  # two before this process; good again after the third step

    def skip(step):
        diverged.on_train_batch_end(step - 1, {"skipped_in_row": skipped[step - 1]})

    run(saving, len(skipped), before=skip)
    assert saved == [18] and progress.is_stopping and diverged.numbers == [17, 18]
    batches = json.loads((tmp_path / "diverged.json").read_text())
    assert [batch["step"] for batch in batches] == list(range(9, 19))


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
