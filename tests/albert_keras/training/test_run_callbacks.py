"""Callbacks of Keras work in a run, or are refused by name."""

import pytest
from tensorflow import keras

from albert_keras.training.pretrain import pretrain
from data_pipeline.errors import InputError


class Epochs(keras.callbacks.Callback):
    """Notes what it is called with."""

    def __init__(self):
        super().__init__()
        self.begun, self.ended = [], []

    def on_epoch_begin(self, epoch, logs=None):
        self.begun.append(epoch)

    def on_epoch_end(self, epoch, logs=None):
        self.ended.append((epoch, sorted(name for name in logs if "loss" in name)))


def test_an_evaluation_ends_an_epoch_and_early_stopping_ends_the_run(
    tiny_records, held_out_records, tiny_training, tmp_path
):
    training = tiny_training.training.replace(evaluate_every=4)
    epochs = Epochs()
    # No loss falls by a thousand: the second epoch is the last.
    stopping = keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=1000)
    result = pretrain(
        tiny_records,
        tmp_path / "run",
        tiny_training.replace(training=training),
        eval_data=held_out_records,
        callbacks=[epochs, stopping],
    )
    assert result.step == 8 and epochs.begun == [0, 1, 2]
    assert [epoch for epoch, _ in epochs.ended] == [0, 1]
    assert {"loss", "masked_lm_loss", "val_loss", "val_masked_lm_loss"} <= set(epochs.ended[0][1])


@pytest.mark.parametrize(
    "callback",
    [
        keras.callbacks.BackupAndRestore("backup"),
        keras.callbacks.ReduceLROnPlateau(),
        keras.callbacks.TerminateOnNaN(),
    ],
)
def test_a_callback_that_contradicts_the_run_is_refused_by_name(callback, tmp_path):
    with pytest.raises(InputError, match=f"must not contain {type(callback).__name__}: "):
        pretrain(tmp_path / "none", tmp_path / "run", callbacks=[callback])
