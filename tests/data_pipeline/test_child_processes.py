"""No process that the packages start executes a file of the current folder, or outlives them."""

import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from data_pipeline.child_processes import Workers, code_command
from data_pipeline.errors import InputError

#: What a new Python process, `multiprocessing`, our programs and their libraries import.
_MODULES = ("typing", "json", "signal", "importlib", "sentencepiece", "numpy", "sitecustomize")
_PACKAGES = ("albert_keras", "data_pipeline")


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """Makes a folder of modules that create a file the current one; returns that file."""
    mark, folder = tmp_path / "mark", tmp_path / "folder"
    code = f"open({str(mark)!r}, 'a').write(__name__)\nraise SystemExit(3)\n"
    for package in _PACKAGES:
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(code)
    for module in _MODULES:
        (folder / f"{module}.py").write_text(code)
    monkeypatch.chdir(folder)
    return mark


def test_the_trap_works(mark):
    subprocess.run([sys.executable, "-c", "import typing"], check=False)
    assert mark.exists()


def test_code_runs_with_our_packages_and_without_those_of_the_current_folder(mark, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(Path.cwd()), *sys.path])
    command = code_command(
        "import albert_keras, data_pipeline, typing, json\nprint(sys.argv[1:])", "a"
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['a']\n"
    assert not mark.exists()


def prepare(factor):
    return factor


def multiply(factor, number):
    return factor * number


def fail(context, number):
    raise InputError(f"{number} is wrong")


def test_all_tasks_are_done_by_isolated_processes(mark):
    with Workers(2, print, ()) as workers:
        assert list(workers.run(operator.is_, [None])) == [True]
    assert not mark.exists()
    with Workers(1, prepare, (3,)) as workers:
        assert list(workers.run(multiply, iter(range(10)))) == list(range(0, 30, 3))


def test_the_error_of_a_task_is_the_error_of_all():
    with pytest.raises(InputError, match="is wrong"):
        with Workers(2, prepare, (3,)) as workers:
            list(workers.run(fail, range(5)))


def end(context, number):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_an_error_instead_of_a_wait_for_ever():
    with pytest.raises(InputError, match="A worker process ended before its work was done"):
        with Workers(2, prepare, (3,)) as workers:
            list(workers.run(end, range(2)))


_PARENT = """
import os, sys, time
from data_pipeline.child_processes import Workers

def prepare():
    return None

def sleep(context, number):
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: another worker writes too
    time.sleep(60)

if __name__ == "__main__":
    with Workers(2, prepare, ()) as workers:
        list(workers.run(sleep, range(2)))
"""


def test_ctrl_c_ends_busy_workers_at_once_and_without_noise(tmp_path):
    (tmp_path / "parent.py").write_text(_PARENT)
    command = [sys.executable, tmp_path / "parent.py"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as parent:
        workers = [int(parent.stdout.readline()) for _ in range(2)]
        started = time.monotonic()
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to the workers too
        shown = parent.communicate(timeout=30)[1]
        assert time.monotonic() - started < 15  # 2, and more on a busy machine
    assert shown.count("Traceback") == shown.count("KeyboardInterrupt") == 1
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)
