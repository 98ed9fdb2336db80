"""One process at a time works on a version, and what the killed have left goes."""

import errno
import fcntl
import logging
import os

from albert_keras.serving.export.publishing import new_version
from albert_keras.serving.export.version_lock import VersionLock, hidden_versions, remove_leftovers


def publish(out):
    with new_version(out) as draft:
        (draft.folder / "saved_model.pb").touch()
    return draft.version


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_version_is_locked_until_its_block_ends(tmp_path):
    with VersionLock.take(tmp_path, 3) as lock:
        assert VersionLock.take(tmp_path, 3) is None
        lock.hidden_folder.mkdir()
        with VersionLock.take(tmp_path, 4):
            assert hidden_versions(tmp_path) == [3, 4]
    assert contents(tmp_path) == []


def test_a_lock_file_that_was_removed_before_it_was_locked_is_no_lock(tmp_path, monkeypatch):
    flock, calls = fcntl.flock, []

    def remove_first(descriptor, operation):
        calls.append(descriptor)
        if len(calls) == 1:
            os.unlink(tmp_path / ".3.lock")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with VersionLock.take(tmp_path, 3):
        assert VersionLock.take(tmp_path, 3) is None


def test_leftovers_of_the_killed_go_and_drafts_of_the_living_stay(tmp_path, caplog):
    # 1: killed while it was written. 2: between the two renames. 4: with its lock file lost.
    for name in (".1.tmp-7", ".2.tmp-7", ".4.tmp-7"):
        (tmp_path / name / "variables").mkdir(parents=True)
    for name in (".1.tmp-7.keras", ".1.lock", "2.keras", ".2.lock", ".5.lock", "9.keras"):
        (tmp_path / name).touch()
    with new_version(tmp_path, version=8) as living:
        (living.folder / "saved_model.pb").touch()
        assert publish(tmp_path) == 10
    assert contents(tmp_path) == ["10", "8", "9.keras"]
    for name in (".1.tmp-7", ".1.tmp-7.keras", ".2.tmp-7", "2.keras", ".4.tmp-7"):
        assert f"`{tmp_path / name}`" in caplog.text
    assert all(record.levelno == logging.WARNING for record in caplog.records)


def test_leftovers_that_cannot_be_removed_are_told(tmp_path, monkeypatch, caplog):
    def fail(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / ".1.tmp-7").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", fail)
        remove_leftovers(tmp_path)
        assert publish(tmp_path) == 2
    assert "leftovers of version 1 could not be removed" in caplog.text
    remove_leftovers(tmp_path)
    assert contents(tmp_path) == ["2"]


def test_without_locks_numbers_are_still_unique_and_leftovers_are_told(
    tmp_path, monkeypatch, caplog
):
    def fail(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    (tmp_path / ".1.tmp-7").mkdir()
    (tmp_path / ".1.lock").touch()
    with new_version(tmp_path) as draft:
        (draft.folder / "saved_model.pb").touch()
        assert publish(tmp_path) == 3
    assert contents(tmp_path) == [".1.lock", ".1.tmp-7", "2", "3"]
    assert "beside it by hand" in caplog.text
