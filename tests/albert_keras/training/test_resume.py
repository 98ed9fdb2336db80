"""An interrupted run ends in the same bits as one that was not, wherever it was interrupted."""

import errno
import os
import random
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.runs.log_file import TIMING, read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingStopped
from albert_keras.training.pretrain import pretrain
from albert_keras.training.saving import SaveCheckpoints
from data_pipeline.errors import InputError
from data_pipeline.records.record_files import RecordFiles

STEPS, EVERY = 40, 6


@pytest.fixture(scope="module")
def hard_training(tiny_training):
    """Returns settings with everything that could go astray: dropout, parts, dynamic masks."""
    values = tiny_training.model_dump(exclude_unset=True)
    values["model"] |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    values["training"] |= {
        "steps": STEPS,
        "batch_size": 32,
        "accumulation_steps": 2,
        "masks": "dynamic",
        "checkpoint_every": EVERY,
        "report_every": 5,
        "skip_spikes": True,
    }
    return type(tiny_training)(**values)


@pytest.fixture(scope="module")
def straight_run(tiny_records, hard_training, tmp_path_factory):
    assert STEPS * 32 > len(RecordFiles(tiny_records)), "the plans should reach the second epoch"
    return pretrain(tiny_records, tmp_path_factory.mktemp("straight") / "run", hard_training).path


def everything(run):
    """Returns all that two runs may not differ in: tensors of the last step, lines of the log."""
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(STEPS))
    tensors = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    lines = [
        {name: value for name, value in line.items() if name not in TIMING}
        for line in read_log(run)
    ]
    return tensors, lines


def interrupt(monkeypatch, at, kind):
    """Ends the next run at a step: by a signal, or as a crash would, with nothing saved."""
    on_batch_end = SaveCheckpoints.on_train_batch_end

    def stop(self, batch, logs=None):
        if self.step + 1 == at:
            if kind == "crash":
                raise MemoryError("a crash")
            os.kill(os.getpid(), signal.SIGTERM)
        on_batch_end(self, batch, logs)

    monkeypatch.setattr(SaveCheckpoints, "on_train_batch_end", stop)


def plans():
    yield [("crash", 3), ("signal", 25)]
    for seed in range(2):
        rng = random.Random(seed)
        steps = sorted(rng.sample(range(1, STEPS), 3))
        plan = [(rng.choice(["signal", "crash"]), step) for step in steps]
        yield pytest.param(plan, marks=pytest.mark.slow)


@pytest.mark.parametrize("plan", list(plans()))
def test_an_interrupted_run_equals_the_uninterrupted_one_bit_for_bit(
    plan, straight_run, tiny_records, hard_training, tmp_path
):
    for kind, at in plan:
        with pytest.MonkeyPatch.context() as patch:
            interrupt(patch, at, kind)
            with pytest.raises((TrainingStopped, MemoryError)):
                pretrain(tiny_records, tmp_path / "run", hard_training)
    result = pretrain(tiny_records, tmp_path / "run", hard_training)
    kind, last = plan[-1]
    assert result.resumed_from >= (last if kind == "signal" else last - EVERY)
    (tensors, lines), (expected, expected_lines) = (
        everything(tmp_path / "run"),
        everything(straight_run),
    )
    assert tensors.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    assert lines == expected_lines and len(lines) == STEPS // 5


@pytest.mark.slow
def test_a_damaged_newest_checkpoint_is_passed_over(
    straight_run, tiny_records, hard_training, tmp_path, caplog
):
    out = shutil.copytree(straight_run, tmp_path / "run")
    (data,) = (out / "checkpoints" / f"step-{STEPS:08d}").glob("*.data-*")
    damaged = bytearray(data.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    data.write_bytes(damaged)
    with caplog.at_level("WARNING"):
        result = pretrain(tiny_records, out, hard_training)
    assert result.resumed_from == STEPS // EVERY * EVERY == 36
    assert f"step-{STEPS:08d}` is damaged" in caplog.text
    (tensors, lines), (expected, expected_lines) = everything(out), everything(straight_run)
    for name, values in expected.items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)
    assert lines == expected_lines


@pytest.mark.slow
def test_another_seed_goes_on_only_by_name(unfinished_run, tiny_records, tiny_training):
    out = unfinished_run
    with pytest.raises(InputError, match="--allow-change config.training.seed"):
        pretrain(tiny_records, out, tiny_training, seed=7)
    changed = pretrain(
        tiny_records, out, tiny_training, allow_changes=["config.training.seed"], seed=7
    )
    assert changed.resumed_from == 10 and changed.step == 12


def test_several_steps_per_execution_compute_the_same(
    tiny_run, tiny_records, tiny_training, tmp_path
):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"steps_per_execution": 2, "checkpoint_every": 4}
    out = pretrain(tiny_records, tmp_path / "run", type(tiny_training)(**values)).path
    for ours, others in zip(read_log(out), read_log(tiny_run), strict=True):
        assert {k: v for k, v in ours.items() if k not in TIMING} == {
            k: v for k, v in others.items() if k not in TIMING
        }


def test_a_deleted_shard_is_one_clear_error(unfinished_run, tiny_records, tiny_training, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "records")
    next((tmp_path / "records").glob("*.tfrecord")).unlink()
    with pytest.raises(InputError, match="does not exist"):
        pretrain(tmp_path / "records", unfinished_run, tiny_training)
    assert Run.open(unfinished_run).checkpoints.steps() == [5, 10]


@pytest.mark.slow
def test_a_full_disk_leaves_the_earlier_checkpoints(
    unfinished_run, tiny_records, tiny_training, monkeypatch
):
    from albert_keras.runs import checkpoints

    out = unfinished_run

    def full(prefix, tensors):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(prefix))

    monkeypatch.setattr(checkpoints, "write_tensors", full)
    with pytest.raises(OSError, match="No space left"):
        pretrain(tiny_records, out, tiny_training)
    monkeypatch.undo()
    assert Run.open(out).checkpoints.steps() == [5, 10]
    assert pretrain(tiny_records, out, tiny_training).resumed_from == 10
