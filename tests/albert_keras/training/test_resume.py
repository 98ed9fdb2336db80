"""An interrupted run ends in the same bits as one that was not, wherever it was interrupted."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingStopped
from albert_keras.training.pretrain import pretrain
from albert_keras.training.saving import SaveCheckpoints
from data_pipeline.errors import InputError
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.checkpoint_tensors import assert_equal_runs, assert_same, tensors_of


@pytest.fixture
def interrupt(monkeypatch):
    """Returns a function that ends the next run at a step: by a signal, or as a crash would."""
    on_batch_end = SaveCheckpoints.on_train_batch_end

    def at(stop, kind):
        def interrupted(self, batch, logs=None):
            if self.progress.step == stop:
                if kind == "crash":  # with nothing saved
                    raise MemoryError("a crash")
                os.kill(os.getpid(), signal.SIGTERM)
            on_batch_end(self, batch, logs)

        monkeypatch.setattr(SaveCheckpoints, "on_train_batch_end", interrupted)

    return at


def plans():
    yield [("signal", 7)]
    for seed in range(2):
        rng = random.Random(seed)
        steps = sorted(rng.sample(range(1, 14), 3))
        plan = [(rng.choice(["signal", "crash"]), step) for step in steps]
        yield pytest.param(plan, marks=pytest.mark.slow)


@pytest.mark.parametrize("plan", list(plans()))
def test_an_interrupted_run_equals_the_uninterrupted_one_bit_for_bit(
    plan, straight_run, tiny_records, hard_training, tmp_path, interrupt
):
    training, out = hard_training.training, tmp_path / "run"
    assert training.steps * training.batch_size > len(RecordFiles(tiny_records)), "two epochs"
    for kind, at in plan:
        interrupt(at, kind)
        with pytest.raises((TrainingStopped, MemoryError)):
            pretrain(tiny_records, out, hard_training)
        if kind == "signal":
            assert Run.open(out).checkpoints.latest() == at
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    interrupt(None, None)
    pretrain(tiny_records, out, hard_training)
    assert_equal_runs(out, straight_run, training.steps)
    assert [line["step"] for line in read_log(out)] == [5, 10, 14]


def test_a_deleted_shard_is_one_clear_error(unfinished_run, tiny_records, tiny_training, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "records")
    next((tmp_path / "records").glob("*.tfrecord")).unlink()
    with pytest.raises(InputError, match="does not exist"):
        pretrain(tmp_path / "records", unfinished_run, tiny_training)
    assert Run.open(unfinished_run).checkpoints.steps() == [5, 10]


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_equals_one_that_was_not(
    tiny_records, tiny_training, tmp_path
):
    training = tiny_training.training.replace(steps=100_000, checkpoint_every=5, report_every=5)
    config, out = tiny_training.replace(training=training), tmp_path / "killed"
    (tmp_path / "config.json").write_text(config.model_dump_json(exclude_unset=True))
    command = [sys.executable, "-m", "albert_keras", "pretrain", "--data", tiny_records]
    command += ["--config", tmp_path / "config.json", "--out", out]
    source, reached = random.Random(7), 0
    for _ in range(8):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            while not (log := read_log(out)) or log[-1]["step"] <= reached:
                assert process.poll() is None
                time.sleep(0.01)
            # Within a step, or while it saves.
            time.sleep(source.uniform(0, 0.4))
        finally:
            process.kill()
            process.wait()
        newest = Run.open(out).checkpoints.newest_valid() or 0
        reached = read_log(out)[-1]["step"]
        assert reached - 5 <= newest <= reached + 5
    straight = pretrain(tiny_records, tmp_path / "straight", config, max_steps=newest)
    assert_same(tensors_of(out, newest), tensors_of(straight.path, newest))
