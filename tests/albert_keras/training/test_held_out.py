"""Scores during a run choose its best checkpoint and, as callbacks do, change nothing else."""

import keras
import pytest

from albert_keras.runs.log_file import read_evaluations
from albert_keras.runs.run import Run
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain
from albert_keras.training.run_callbacks import Progress, RunCallbacks
from data_pipeline.errors import InputError
from tests.albert_keras.checkpoint_tensors import assert_equal_runs


class Epochs(keras.callbacks.Callback):
    """Notes what it is called with."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended = [], []

    def on_train_begin(self, logs=None):
        self.length = self.params["epochs"], self.params["steps"]

    def on_epoch_begin(self, epoch, logs=None):
        self.begun.append(epoch)

    def on_epoch_end(self, epoch, logs=None):
        self.ended.append((epoch, {name for name in logs if "loss" in name}))


@pytest.fixture(scope="module")
def epochs():
    return Epochs()


@pytest.fixture(scope="module")
def watched_run(train, tiny_training, mixed_records, epochs, tmp_path_factory):
    """Returns `tiny_run`, scored every 6 steps, and with two steps per execution."""
    flags = {"evaluate_every": 6, "steps_per_execution": 2, "checkpoint_every": 8}
    config, out = tiny_training.with_flags(**flags), tmp_path_factory.mktemp("watched") / "run"
    return train(out, config, eval_data=mixed_records, callbacks=[epochs])


def test_scores_callbacks_and_steps_per_execution_change_no_weight(watched_run, tiny_run):
    assert_equal_runs(watched_run, tiny_run, 12)


def test_the_best_checkpoint_has_the_lowest_score(watched_run, mixed_records):
    found, checkpoints = dict(read_evaluations(watched_run)), Run.open(watched_run).checkpoints
    assert list(found) == [6, 12]
    assert checkpoints.steps() == [6, 8, 12]  # the first score is the best one so far
    best = checkpoints.best()
    assert found[best]["loss"] == min(score["loss"] for score in found.values())
    assert checkpoints.choose("best") == best
    expected = evaluate(watched_run, mixed_records, step=6)
    for name in ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_accuracy"):
        assert found[6][name] == pytest.approx(getattr(expected, name), rel=1e-4)
    overlap = found[6]["overlap"]
    assert overlap == expected.overlap and 0 < overlap["normalised"] < overlap["rows"]


def test_the_newest_scores_are_compared_with_counts_of_the_training(watched_run, mixed_records):
    logged = [scores for step, scores in read_evaluations(watched_run) if step == 12]
    expected = evaluate(watched_run, mixed_records)._asdict()
    assert set(expected["baselines"]) == {"unigram", "bigram"}
    for name in ("num_predictions", "unigram_guess", "unigram_accuracy", "baselines"):
        assert logged[1][name] == expected[name] and name not in logged[0]


def test_an_evaluation_ends_an_epoch(watched_run, epochs):
    assert epochs.begun == [0, 1, 2] and epochs.length == (2, 6)
    losses = {"loss", "masked_lm_loss", "val_loss", "val_masked_lm_loss"}
    assert [epoch for epoch, _ in epochs.ended] == [0, 1] and losses <= epochs.ended[0][1]


class Model:
    stop_training = False


def test_early_stopping_ends_the_run_that_is_saved():
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=1)
    progress = Progress(0, 9)
    progress.results = {"loss": 3.0}
    callbacks = RunCallbacks(progress, [], [stopping], [], 4)
    callbacks.set_model(Model())
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    for batch in range(8):
        assert not progress.stop_soon
        callbacks.on_train_batch_end(batch, {})
    assert progress.stop_soon


class OwnRate(keras.callbacks.LearningRateScheduler):
    """A schedule of a user."""


@pytest.mark.parametrize(
    "callback, shown",
    [
        (keras.callbacks.BackupAndRestore("backup"), "BackupAndRestore"),
        (keras.callbacks.TerminateOnNaN(), "TerminateOnNaN"),
        (OwnRate(lambda epoch: 0.1), "OwnRate, a LearningRateScheduler"),
    ],
)
def test_a_callback_that_contradicts_the_run_is_refused_by_name(callback, shown, tmp_path):
    with pytest.raises(InputError, match=f"must not contain {shown}: "):
        pretrain(tmp_path / "none", tmp_path / "run", callbacks=[callback])
