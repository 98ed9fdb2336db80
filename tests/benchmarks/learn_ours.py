"""Our side of `learn`: `pretrain` with a recipe and a time budget, scored at the marks."""

from pathlib import Path

import keras

from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import score
from albert_keras.training.pretrain import pretrain
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks.recorder import Point, Recorder

_BATCH_SIZE = 64


class ScoreAtMarks(keras.callbacks.Callback):
    """Scores the model in training at the marks; the time budget follows its clock."""

    def __init__(self, seconds: float, held_out: RecordFiles):
        super().__init__()
        self.recorder = Recorder(seconds, self._score)
        self._dataset = evaluation_dataset(held_out, _BATCH_SIZE)
        self._batch = -1

    def on_train_begin(self, logs=None):
        self.recorder.start()
        self._batch = -1

    def on_train_batch_end(self, batch, logs=None):
        # With several steps per execution `batch` is the last of them.
        made, self._batch = batch - self._batch, batch
        self.recorder.add_updates(made)

    def _score(self):
        with self.model.means_kept():
            scores = score(self.model, self._dataset)
        return scores["masked_lm_loss"], scores["masked_lm_accuracy"]


def train(
    records: RecordFiles,
    held_out: RecordFiles,
    config: PretrainingConfig,
    seconds: float,
    run: Path,
) -> list[Point]:
    """Trains as `pretrain` does, in the folder `run`; returns the points of the curve."""
    scores = ScoreAtMarks(seconds, held_out)
    pretrain(records.folder, run, config, callbacks=[scores], clock=scores.recorder.seconds)
    return scores.recorder.end()
