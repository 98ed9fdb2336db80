"""Checkpoints are whole, named and strict, whatever happens while they are written or later."""

import errno
import json
import logging
import os
import resource
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_keras import AlbertConfig, AlbertForPretraining
from albert_keras.keras_versions import name_of
from albert_keras.runs.checkpoints import CheckpointFolder
from albert_keras.runs.tensors import CheckpointTensors, weight_names
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import SMALL

MEMBERS = ["model.ckpt.data-00000-of-00001", "model.ckpt.index", "state.json", "digests.json"]


def values_of(step):
    return {"kernel": np.full([4, 3], step, np.float32), "kernel/adam_m": np.full(5, step, "f4")}


def loaded(folder, step):
    """Returns what a checkpoint holds, by step, if it is the same in all tensors and the state."""
    variables = {name: tf.Variable(tf.zeros_like(value)) for name, value in values_of(0).items()}
    variables["global_step"] = tf.Variable(0, dtype=tf.int64)
    state = folder.load(step, variables)
    (value,) = {float(one) for variable in variables.values() for one in variable.numpy().flat}
    assert state == {"saved": value}
    return value


def saved_at(path, *steps, keep=3):
    folder = CheckpointFolder(path, keep)
    for step in steps:
        folder.save(step, values_of(step), {"saved": step})
    return folder


def flip(path, place=-1, bit=0):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def names_in(folder):
    return sorted(path.name for path in folder.path.iterdir())


@pytest.fixture
def folder(tmp_path):
    return saved_at(tmp_path / "run" / "checkpoints", 3, 6, 9)


# What a checkpoint holds.


def test_a_checkpoint_explains_and_proves_itself(folder):
    folder.save(12, values_of(12), {"saved": 12, "best": [0.5, None]}, score=np.float32(1.5))
    checkpoint = folder.path / "step-00000012"
    assert sorted(path.name for path in checkpoint.iterdir()) == sorted(MEMBERS)
    assert json.loads((checkpoint / "state.json").read_text()) == {
        "state": {"saved": 12, "best": [0.5, None]},
        "score": 1.5,
        "scored_on": None,
    }
    digests = json.loads((checkpoint / "digests.json").read_text())
    assert digests["step"] == 12 and sorted(digests["files"]) == sorted(MEMBERS[:3])
    for name, saved in digests["files"].items():
        assert saved["bytes"] == (checkpoint / name).stat().st_size


def test_weights_come_back_bit_for_bit(tmp_path):
    model, other = (AlbertForPretraining(AlbertConfig(**SMALL), seed=seed) for seed in (1, 2))
    folder = CheckpointFolder(tmp_path)
    folder.save(9, weight_names(model))
    folder.restore(9, other)
    for before, after in zip(model.weights, other.weights, strict=True):
        assert name_of(before) == name_of(after)
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("best", [3, 9])
def test_a_finished_training_keeps_the_weights_of_one_step(folder, best):
    for step in (3, 6, 9):
        folder.save(step, values_of(step), {"saved": step}, float(step != best), scored_on="dev")
    for _ in range(2):  # the second time it does nothing
        folder.keep_weights(best, 9)
        assert folder.steps() == [best] == [folder.best()]
        assert folder.state(best) == {"saved": 9, "finished_at": 9}
        assert set(CheckpointTensors(folder.prefix(best)).shapes) == {"kernel", "global_step"}
    kernel = tf.Variable(tf.zeros([4, 3]))
    folder.load(best, {"kernel": kernel})
    assert (kernel.numpy() == best).all()


# What does not fit.


def test_tensors_that_do_not_fit_are_all_named_and_nothing_is_loaded(folder):
    variables = {
        "kernel": tf.Variable(tf.zeros([4, 3])),
        "kernel/adam_m": tf.Variable(tf.zeros(7)),
        "bias": tf.Variable(tf.zeros(3)),
        "global_step": tf.Variable(0.0),
    }
    with pytest.raises(InputError) as caught:
        folder.load(9, variables)
    assert str(caught.value).splitlines()[1:] == [
        "  kernel/adam_m: expected [7], found [5]",
        "  bias: expected [3], found nothing",
        "  global_step: expected float32, found int64",
    ]
    assert (variables["kernel"].numpy() == 0).all()


# Damage.


@pytest.mark.parametrize("member", MEMBERS)
def test_one_bit_flipped_in_the_newest_makes_the_one_before_be_taken(folder, member, caplog):
    flip(folder.path / "step-00000009" / member, place=-3)
    with pytest.raises(InputError, match=rf"step-00000009` is damaged: .*`{member}`"):
        folder.load(9, {})
    with caplog.at_level(logging.WARNING):
        assert folder.newest_valid() == 6
    (warning,) = caplog.messages
    assert "step-00000009` is damaged" in warning and f"`{member}`" in warning
    assert "step 6 is used instead" in warning
    assert loaded(folder, 6) == 6


def test_a_checkpoint_without_digests_does_not_count_and_is_mentioned(folder, caplog):
    (folder.path / "step-00000009" / "digests.json").unlink()
    (folder.path / ".step-00000012.tmp-1").mkdir()  # of a process that was killed
    assert folder.steps() == [3, 6] and folder.latest() == 6 and folder.newest_valid() == 6
    assert "`digests.json` is missing; step 6 is used instead" in caplog.text
    folder.save(9, values_of(9), {"saved": 9})
    assert names_in(folder) == [f"step-0000000{step}" for step in (3, 6, 9)]
    assert loaded(folder, 9) == 9


# Which ones stay.


def test_the_best_one_is_kept_as_well(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=2)
    scores = {1: 3.0, 2: 1.0, 3: 2.0, 4: 5.0, 5: None, 6: float("nan"), 7: 1.0, 8: 1.5, 9: 1.25}
    left = {}
    for step, score in scores.items():
        folder.save(step, values_of(step), score=score)
        left[step] = (folder.steps(), folder.best())
    assert left[1] == ([1], 1) and left[4] == ([2, 3, 4], 2)
    assert left[6] == ([2, 5, 6], 2)
    assert left[7] == ([6, 7], 7)  # as good and newer
    assert left[9] == ([7, 8, 9], 7)


def test_scores_on_other_data_are_not_compared(tmp_path):
    folder = CheckpointFolder(tmp_path, keep=9)
    folder.save(1, values_of(1), score=1.0, scored_on="training")
    folder.save(2, values_of(2), score=3.0, scored_on="held out")
    folder.save(3, values_of(3))
    assert folder.best() == 2
    folder.save(4, values_of(4), score=4.0, scored_on="held out")
    assert folder.best() == 2
    folder.save(5, values_of(5), score=2.0, scored_on="training")
    assert folder.best() == 1


def test_damaged_ones_that_were_passed_over_do_not_push_out_the_good_one(folder):
    for step in (6, 9):
        flip(folder.path / f"step-{step:08d}" / MEMBERS[0])
    folder.keep = 2
    assert folder.newest_valid() == 3
    folder.save(7, values_of(7), {"saved": 7})
    assert folder.steps() == [3, 6, 7, 9] and folder.newest_valid() == 7
    folder.save(8, values_of(8), {"saved": 8})
    assert folder.steps() == [7, 8, 9]
    folder.save(9, values_of(9), {"saved": 9})
    assert folder.steps() == [8, 9] and loaded(folder, folder.newest_valid()) == 9


# The same step once more.


def test_a_checkpoint_of_the_same_step_is_replaced(tmp_path):
    folder = saved_at(tmp_path, 5, keep=1)
    folder.save(5, values_of(7) | {"global_step": 0}, {"saved": 7})
    assert names_in(folder) == ["step-00000005"]
    kernel = tf.Variable(tf.zeros([4, 3]))
    assert folder.load(5, {"kernel": kernel}) == {"saved": 7} and (kernel.numpy() == 7).all()


def test_the_one_being_replaced_counts_until_the_new_one_is_there(folder):
    """As a process leaves it that is killed between the two renames."""
    os.replace(folder.path / "step-00000009", folder.path / "step-00000009.replaced")
    assert folder.steps() == [3, 6, 9] and folder.newest_valid() == 9 and loaded(folder, 9) == 9
    saved_at(folder.path, 12)
    assert names_in(folder) == ["step-00000006", "step-00000009", "step-00000012"]
    assert loaded(folder, 9) == 9


# Failures while saving.


def fail(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fail_for(name, function):
    return lambda path, *args, **kwargs: (fail if name in path.name else function)(
        path, *args, **kwargs
    )


@pytest.mark.parametrize(
    "place, step", [("state.json", 12), ("digests.json", 9), ("fsync", 12), ("rename", 9)]
)
def test_a_full_disk_is_an_error_with_the_path_and_leaves_nothing(folder, place, step, monkeypatch):
    from pathlib import Path

    before = names_in(folder)
    if place == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    elif place == "rename":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(Path, "write_text", fail_for(place, Path.write_text))
    with pytest.raises(OSError, match="No space left on device") as caught:
        folder.save(step, values_of(step))
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC and f"step-{step:08d}" in caught.value.filename
    assert names_in(folder) == before
    assert [loaded(folder, each) for each in folder.steps()] == [3, 6, 9]


def test_tensorflow_reaching_the_end_of_the_room_is_such_an_error(folder):
    """The limit on the size of files stands for a full disk: the system call itself fails."""
    before, limits = names_in(folder), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            folder.save(12, {"kernel": np.zeros([100, 1000], np.float32)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG and "step-00000012" in caught.value.filename
    assert names_in(folder) == before and folder.newest_valid() == 9


def test_an_old_one_that_cannot_be_removed_does_not_end_the_run(folder, monkeypatch, caplog):
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors=False: ignore_errors or fail())
    saved_at(folder.path, 12)
    assert folder.steps() == [6, 9, 12]
    assert "step-00000003` could not be removed: [Errno 28]" in caplog.text
    monkeypatch.undo()
    saved_at(folder.path, 15)
    assert names_in(folder) == ["step-00000009", "step-00000012", "step-00000015"]
