"""Our contestant: `pretrain` with a recipe and a time budget, scored at the marks."""

from importlib.metadata import version

import keras

from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import score
from albert_keras.training.pretrain import pretrain
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks.learning.job import Job, Recorder

_BATCH_SIZE = 64


class ScoreAtMarks(keras.callbacks.Callback):
    """Scores the model in training at the marks; the time budget follows its clock."""

    def __init__(self, job: Job):
        super().__init__()
        self.recorder = Recorder(job.seconds, self._score)
        self._dataset = evaluation_dataset(RecordFiles(job.eval_data), _BATCH_SIZE)
        self._batch = -1

    def begin_stage(self, positions_per_step: int, flops_per_step: int):
        """Counts the positions that each step of a stage trains on."""
        self.recorder.positions_per_update = positions_per_step

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


def train(job: Job) -> dict:
    """Trains as `pretrain` does, in the folder `run` of the settings; see `Recorder.end`."""
    config = PretrainingConfig.of(
        job.settings["config"], seed=job.seed, time_budget=f"{job.seconds:.3f}s"
    )
    scores = ScoreAtMarks(job)
    clock = scores.recorder.seconds
    pretrain(job.records, job.settings["run"], config, callbacks=[scores], clock=clock)
    weights = sum(weight.shape.num_elements() for weight in scores.model.trainable_variables)
    versions = {"tensorflow": version("tensorflow")}
    return scores.recorder.end({"weights": weights, "versions": versions})
