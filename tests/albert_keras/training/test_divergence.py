"""A run whose losses are not finite ends saved."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingDiverged
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.checkpoint_tensors import assert_same, tensors_of


@pytest.mark.slow
def test_ten_in_a_row_end_the_run_saved(tiny_records, tiny_training, tmp_path, monkeypatch):
    loss, out = AlbertForPretraining._loss, tmp_path / "run"

    def poison(self, sums, counts):  # from the fourth step on
        return loss(self, sums, counts) * tf.where(self.optimizer.iterations < 3, 1.0, np.nan)

    monkeypatch.setattr(AlbertForPretraining, "_loss", poison)
    config = tiny_training.with_flags(steps=40, checkpoint_every=3)
    with pytest.raises(TrainingDiverged, match="ended at step 13.*last 10 steps"):
        pretrain(tiny_records, out, config)
    assert Run.open(out).checkpoints.latest() == 13
    before, after = (
        {name: value for name, value in tensors_of(out, step).items() if name[0] in "bc"}
        for step in (9, 13)  # "bert/...", "cls/..."
    )
    assert_same(after, before)
    assert sum(line["skipped"] for line in read_log(out)) == 9  # up to the last report, step 12
    with pytest.raises(TrainingDiverged, match="ended at step 23"):  # ten more are tried
        pretrain(tiny_records, out, config)
