"""A run whose losses are not finite ends saved, and says which records it fell over."""

import json

import numpy as np
import pytest

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingDiverged
from albert_keras.training.pretrain import pretrain
from data_pipeline.reader.reader import training_numbers
from data_pipeline.records.record_files import RecordFiles


@pytest.fixture
def poisoned(monkeypatch):
    """Lets the loss be NaN from the fourth step on."""
    loss = AlbertForPretraining._loss

    def poison(self, sums, counts):
        import tensorflow as tf

        return loss(self, sums, counts) * tf.where(self.optimizer.iterations < 3, 1.0, np.nan)

    monkeypatch.setattr(AlbertForPretraining, "_loss", poison)


def weights_at(run, step):
    import tensorflow as tf

    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(step))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.startswith(("bert/", "cls/"))
    }


@pytest.mark.slow
def test_ten_in_a_row_end_the_run_saved_and_named(tiny_records, tiny_training, tmp_path, poisoned):
    out = tmp_path / "run"
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"steps": 40, "checkpoint_every": 3}
    config = type(tiny_training)(**values)
    with pytest.raises(TrainingDiverged, match="ended at step 13.*last 10 steps") as stopped:
        pretrain(tiny_records, out, config)
    assert Run.open(out).checkpoints.latest() == 13
    before, after = weights_at(out, 9), weights_at(out, 13)
    for name, tensor in before.items():
        np.testing.assert_array_equal(after[name], tensor, err_msg=name)
    batches = json.loads((out / "diverged.json").read_text())
    assert [batch["step"] for batch in batches] == list(range(4, 14))
    expected = training_numbers(12, 8, len(RecordFiles(tiny_records)), config.training.seed)
    assert batches[-1]["records"] == stopped.value.records == expected.tolist()
    assert sum(line["skipped"] for line in read_log(out)) == 9  # up to the last report, step 12

    with pytest.raises(TrainingDiverged, match="ended at step 23"):  # ten more are tried
        pretrain(tiny_records, out, config)


@pytest.mark.slow
def test_a_few_are_left_out_and_counted(tiny_records, tiny_training, tmp_path, monkeypatch):
    import tensorflow as tf

    loss = AlbertForPretraining._loss

    def poison(self, sums, counts):
        is_bad = (self.optimizer.iterations > 2) & (self.optimizer.iterations < 6)
        return loss(self, sums, counts) * tf.where(is_bad, np.nan, 1.0)

    monkeypatch.setattr(AlbertForPretraining, "_loss", poison)
    run = pretrain(tiny_records, tmp_path / "run", tiny_training)
    assert run.step == 12
    log = read_log(run.path)
    assert [line["skipped"] for line in log] == [1, 2, 0]
    assert all(np.isfinite(list(line.values())).all() for line in log)
