"""Files and folders appear whole or not at all; a folder has one process that works in it."""

import errno
import os
import signal
import socket
import subprocess
import sys

import pytest

from data_pipeline.errors import InputError
from data_pipeline.files import (
    LOCK_FILE,
    check_output_folder,
    whole_file,
    whole_folder,
)
from data_pipeline.folder_lock import FolderLock

_HOLDER = """
import sys, time
from pathlib import Path
from data_pipeline.folder_lock import FolderLock

FolderLock(Path(sys.argv[1])).take()
print("taken", flush=True)
time.sleep(60)
"""


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("done")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_text() == "done"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_leaves_no_folder_and_no_new_parents(tmp_path):
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "x" / "y") as temporary:
        (temporary / "file").write_text("half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    with subprocess.Popen(["true"]) as process:
        process.wait()
    for name in (f"model.tmp-{process.pid}", f"model.tmp-{os.getppid()}", "model2.tmp-1"):
        (tmp_path / f".{name}").mkdir()
    with whole_folder(tmp_path / "model"):
        pass
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"model", f".model.tmp-{os.getppid()}", ".model2.tmp-1"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_a_full_disk_names_the_file(kind, number, tmp_path):
    error = kind(number, "x") if kind is OSError else kind(f"HDF5: {os.strerror(number)}")
    for whole in (whole_file, whole_folder):
        with pytest.raises(OSError) as raised, whole(tmp_path / "model"):
            raise error
        assert raised.value.errno == number
        assert raised.value.filename == str(tmp_path / "model")
        error.filename = None


def test_the_second_is_refused_with_host_and_process_until_the_first_is_killed(tmp_path):
    command = [sys.executable, "-c", _HOLDER, tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "taken\n"
        with FolderLock(tmp_path) as lock, pytest.raises(InputError) as error:
            lock.take()
        holder.send_signal(signal.SIGKILL)
    who = f"process {holder.pid} on host {socket.gethostname()}"
    assert f"`{tmp_path}` is being trained by {who}. Wait until" in str(error.value)
    assert (tmp_path / LOCK_FILE).exists()  # a killed process leaves it
    check_output_folder(tmp_path)  # and the folder counts as empty
    with pytest.raises(InputError, match="is a file"):
        check_output_folder(tmp_path / LOCK_FILE / "out")
    with FolderLock(tmp_path) as lock:
        lock.take()
        lock.take()  # it has it already
        assert f"process {os.getpid()} " in (tmp_path / LOCK_FILE).read_text()
    assert not (tmp_path / LOCK_FILE).exists()


def test_links_are_replaced_and_never_followed(tmp_path):
    other = tmp_path / "notes"
    other.write_text("mine")
    for name in ("a", f".a.tmp-{os.getpid()}"):
        (tmp_path / name).symlink_to(other)
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("done")
    assert (tmp_path / "a").read_text() == "done" and other.read_text() == "mine"


def test_a_link_to_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    check_output_folder(tmp_path / "out")
    with whole_folder(tmp_path / "out") as temporary:
        (temporary / "a").write_text("done")
    assert (tmp_path / "out").is_symlink() and (tmp_path / "disk" / "a").read_text() == "done"


def test_a_folder_appears_with_its_lock(tmp_path):
    hidden, folder = tmp_path / ".run.tmp", tmp_path / "run"
    hidden.mkdir()
    with FolderLock(folder) as lock:
        lock.take(hidden)
        hidden.rename(folder)
        with FolderLock(folder) as other, pytest.raises(InputError, match="is being trained by"):
            other.take()
    assert not list(folder.iterdir())


def test_a_folder_made_for_the_lock_is_removed_if_nothing_is_written_there(tmp_path):
    for is_used in (False, True):
        with FolderLock(tmp_path / "a" / "b", makes_folder=True) as lock:
            lock.take()
            if is_used:
                (tmp_path / "a" / "b" / "x").touch()
        assert [path.name for path in tmp_path.rglob("*")] == (["a", "b", "x"] if is_used else [])
