"""Tasks run in processes that end with the one that started them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from data_pipeline.building.workers import Workers
from data_pipeline.errors import InputError


def prepare(factor):
    return factor


def multiply(factor, number):
    return factor * number


def fail(context, number):
    raise InputError(f"{number} is wrong")


def be_killed(context, number):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("count", [1, 2])
def test_all_tasks_are_done(count):
    with Workers(count, prepare, (3,)) as workers:
        assert sorted(workers.run(multiply, iter(range(10)))) == list(range(0, 30, 3))


@pytest.mark.parametrize("count", [1, 2])
def test_the_error_of_a_task_is_the_error_of_all(count):
    with pytest.raises(InputError, match="is wrong"):
        with Workers(count, prepare, (3,)) as workers:
            list(workers.run(fail, range(5)))


_KILLED_AT_THE_START = """
import os, signal, threading, time
from pathlib import Path
from data_pipeline.building.workers import Workers

def prepare(data):
    return None

def add_one(context, number):
    return number + 1

def kill():
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)
                return

if __name__ == "__main__":
    threading.Thread(target=kill, daemon=True).start()
    with Workers(2, prepare, (b"data",)) as workers:
        list(workers.run(add_one, range(8)))
"""


def test_a_process_killed_at_its_start_is_an_error_instead_of_a_wait_for_ever(tmp_path):
    path = tmp_path / "parent.py"
    path.write_text(_KILLED_AT_THE_START)
    command = [sys.executable, path]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=30)
    assert "InputError: A worker process ended before its work was done" in done.stderr


def test_a_process_that_is_killed_at_its_work_is_an_error():
    with pytest.raises(InputError, match="worker process ended before"):
        with Workers(2, prepare, (3,)) as workers:
            list(workers.run(be_killed, range(6)))


_PARENT = """
import os, sys, time
from data_pipeline.building.workers import Workers

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
