"""A version appears whole or not at all, whoever else publishes, fails or is killed."""

import errno
import logging
import os

import pytest
import tensorflow as tf

from albert_keras.serving.export import publishing
from albert_keras.serving.export.publishing import new_version, remove_old_versions
from albert_keras.serving.export.version_lock import VersionLock
from albert_keras.serving.layout import versions
from data_pipeline.errors import InputError
from tests.albert_keras.serving.goals import races
from tests.albert_keras.serving.goals.telling_version import look

LARGEST = 2**63 - 1


def publish(out, **options):
    with new_version(out, **options) as draft:
        (draft.folder / "saved_model.pb").write_text("graph")
        draft.keras_file.write_text("keras")
    return draft.version


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_version_and_its_model_for_keras_appear_when_the_block_ends(tmp_path):
    out = tmp_path / "models" / "books"
    with new_version(out) as draft:
        assert contents(draft.folder) == [] and draft.keras_file.suffix == ".keras"
        (draft.folder / "saved_model.pb").write_text("graph")
        draft.keras_file.write_text("keras")
        assert all(name.startswith(".") for name in contents(out)) and not versions(out)
    assert draft.version == 1 and contents(out) == ["1", "1.keras"]
    assert (out / "1" / "saved_model.pb").read_text() == "graph"


def test_all_is_on_the_disk_before_the_version_has_its_name(tmp_path, monkeypatch):
    steps, fsync, rename = [], os.fsync, os.rename

    def record_fsync(descriptor):
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def record_rename(source, target):
        steps.append(f"-> {os.path.basename(target)}")
        rename(source, target)

    with new_version(tmp_path) as draft:
        (draft.folder / "variables").mkdir()
        (draft.folder / "variables" / "data").touch()
        draft.keras_file.touch()
        monkeypatch.setattr(os, "fsync", record_fsync)
        monkeypatch.setattr(os, "rename", record_rename)
    before = {draft.folder.name, "variables", "data", draft.keras_file.name}
    assert set(steps[:4]) == before
    assert steps[4:] == ["-> 1.keras", "-> 1", tmp_path.name]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, error):
    with pytest.raises(error), new_version(tmp_path / "models" / "books") as draft:
        (draft.folder / "saved_model.pb").touch()
        draft.keras_file.touch()
        raise error
    assert contents(tmp_path) == []


def test_the_number_is_the_one_after_the_largest(tmp_path):
    for name in ("2", "0010", "v99", str(LARGEST + 1)):
        (tmp_path / name).mkdir()
    with new_version(tmp_path) as first, new_version(tmp_path) as second:
        for draft in (first, second):
            (draft.folder / "saved_model.pb").touch()
    assert (first.version, second.version, publish(tmp_path)) == (11, 12, 13)
    (tmp_path / "20.keras").touch()
    assert publish(tmp_path) == 21
    assert publish(tmp_path, version=LARGEST) == LARGEST
    with pytest.raises(InputError, match=f"from 1 to .* Received: {LARGEST + 1}"):
        publish(tmp_path)


@pytest.mark.parametrize("version", [0, -1, LARGEST + 1, True, 1.0, "1"])
def test_an_impossible_version_is_refused(tmp_path, version):
    with pytest.raises(InputError, match="A version must be an int from 1"):
        publish(tmp_path / "books", version=version)
    assert contents(tmp_path) == []


@pytest.mark.parametrize("keep", [0, -1, True, 1.5])
def test_an_impossible_number_to_keep_is_refused(tmp_path, keep):
    with pytest.raises(InputError, match="`keep` must be None or a positive int"):
        publish(tmp_path, keep=keep)


@pytest.mark.parametrize("name", ["3", "003", "+3", "3.keras"])
def test_a_version_that_exists_is_refused_before_any_work(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        with new_version(tmp_path, version=3):
            pytest.fail("the block was run")
    assert contents(tmp_path) == [name]


def test_a_version_that_is_being_published_is_refused(tmp_path):
    with new_version(tmp_path, version=3) as draft:
        (draft.folder / "saved_model.pb").touch()
        with pytest.raises(InputError, match="is being published or removed by another process"):
            publish(tmp_path, version=3)
    assert contents(tmp_path) == ["3"]


@pytest.mark.parametrize("name", ["file", "file/books", "/proc/albert"])
def test_a_folder_that_cannot_be_written_is_refused_before_any_work(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written: .* Choose another --out"):
        with new_version(tmp_path / name):
            pytest.fail("the block was run")
    assert contents(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["3", "3.keras"])
def test_what_has_come_by_the_number_otherwise_is_not_replaced(tmp_path, name):
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        with new_version(tmp_path, version=3) as draft:
            draft.keras_file.touch()
            (tmp_path / name).mkdir()
    assert contents(tmp_path) == [name]


def test_the_largest_versions_stay_and_the_new_one(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / "README.md").touch()
    (tmp_path / "notes").mkdir()
    for version in (5, 6, 7, 10):
        publish(tmp_path, version=version)
    assert publish(tmp_path, version=2, keep=2) == 2
    expected = ["10", "10.keras", "2", "2.keras", "7", "7.keras", "README.md", "notes"]
    assert contents(tmp_path) == expected
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"version {version} removed: the newest 2 are kept" for version in (5, 6)]


def test_an_old_version_loses_its_number_before_anything_in_it_goes(tmp_path, monkeypatch):
    publish(tmp_path)
    publish(tmp_path)
    seen, give_back = [], VersionLock.__exit__

    def see(lock, *exception):
        seen.append((contents(tmp_path), contents(lock.hidden_folder)))
        give_back(lock, *exception)

    monkeypatch.setattr(VersionLock, "__exit__", see)
    monkeypatch.setattr(publishing, "fsync", seen.append)
    remove_old_versions(tmp_path, keep=1)
    hidden = f".1.tmp-{os.getpid()}"
    expected = [".1.lock", hidden, "1.keras", "2", "2.keras"]
    assert seen == [tmp_path, (expected, ["saved_model.pb"])]
    assert contents(tmp_path) == ["2", "2.keras"]


def test_a_number_that_is_lost_just_before_it_is_locked_is_passed_over(tmp_path, monkeypatch):
    take = VersionLock.take

    def take_late(out, version):
        if version == 1:
            (tmp_path / "1").mkdir(exist_ok=True)
        return take(out, version)

    monkeypatch.setattr(VersionLock, "take", take_late)
    assert publish(tmp_path) == 2
    assert contents(tmp_path) == ["1", "2", "2.keras"]


def test_the_reader_of_the_races_tells_a_partial_version(tmp_path):
    races.publish(tmp_path)
    assert look(tmp_path, 1) == "whole" and look(tmp_path, 2) == "gone"
    (tmp_path / "1.keras").rename(tmp_path / "model")
    assert look(tmp_path, 1) == "partial"
    (tmp_path / "model").rename(tmp_path / "1.keras")
    (tmp_path / "1" / "saved_model.pb").unlink()
    assert look(tmp_path, 1) == "partial"


@pytest.mark.parametrize("keep", [None, 3])
def test_a_poller_sees_no_part_of_a_version(tmp_path, keep):
    seen = races.run("against_poller", tmp_path / "books", publishes=30, keep=keep)
    assert seen["partial"] == 0 and seen["whole"] > 0 and len(seen["left"]) == 2 * (keep or 30)


def test_a_publisher_may_be_killed_at_any_step(tmp_path):
    told = races.run("killed_at_each_step", tmp_path)
    assert told["steps"] > 30 and told["removed"] > 60


def test_publishers_at_once_get_a_number_each(tmp_path):
    numbers = sum(races.run("at_once", tmp_path, processes=6, each=5), [])
    assert sorted(numbers) == versions(tmp_path) and len(numbers) == 30
    assert all(look(tmp_path, version) == "whole" for version in numbers)


def test_one_of_several_publishers_gets_the_number_they_all_want(tmp_path):
    answers = races.run("same_numbers", tmp_path, processes=3, each=5)
    assert sorted(sum((got for got, _ in answers), [])) == [1, 2, 3, 4, 5]
    assert sum(len(refused) for _, refused in answers) == 10


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "saved_model.pb; No space left on device"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "1.keras"),
    ],
)
def test_a_full_disk_is_one_clear_error_and_leaves_nothing(tmp_path, error):
    out = tmp_path / "models" / "books"
    with pytest.raises(InputError, match="the disk is full. Version 1 was not published"):
        with new_version(out) as draft:
            (draft.folder / "saved_model.pb").write_bytes(b"half of it")
            raise error
    assert list(tmp_path.iterdir()) == []


def test_every_other_error_stays_what_it_is(tmp_path):
    with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM"), new_version(tmp_path):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
