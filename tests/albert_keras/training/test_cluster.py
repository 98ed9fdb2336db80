"""Two processes on this machine are two workers."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import tensorflow as tf

from albert_keras.training.cluster import (
    WorkerLost,
    Workers,
    means_lost_worker,
    noticing_lost_workers,
    read_workers,
    restart,
)
from albert_keras.training.rendezvous import meet
from data_pipeline.errors import InputError

#: Begins the program of a worker; `say` tells the test how far it is.
BEGINNING = """
import os, signal, sys, time
def say(*words):
    print(*words, flush=True)
import tensorflow as tf
from albert_keras.training import cluster
from albert_keras.training.strategy import build_strategy
try:
    with cluster.noticing_lost_workers():
        strategy = build_strategy("multiworker")
        index = strategy.cluster_resolver.task_id
        say("joined")
        work()
except cluster.WorkerLost:
    say("lost")
    cluster.restart()
"""


def tf_config(addresses, index):
    return json.dumps(
        {"cluster": {"worker": list(addresses)}, "task": {"type": "worker", "index": index}}
    )


@pytest.fixture
def addresses():
    """Returns two addresses of this machine at which nobody listens."""
    return tuple(f"localhost:{port}" for port in free_ports(2))


def free_ports(number):
    # Below the ports that the system hands out itself: those may be gone again when they are used.
    ports = []
    while len(ports) < number:
        port = random.randrange(20000, 30000)
        with socket.socket() as free:
            if port not in ports and free.connect_ex(("localhost", port)):
                ports.append(port)
    return ports


@pytest.fixture
def start(addresses, tmp_path):
    """Returns a function that starts a worker: (index, body of its work) -> Popen."""
    processes = []

    def start_worker(index, work):
        program = tmp_path / f"worker_{index}.py"
        body = "".join(f"    {line}\n" for line in work.strip().splitlines())
        program.write_text(f"def work():\n{body}{BEGINNING}")
        environ = os.environ | {
            "TF_CONFIG": tf_config(addresses, index),
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        process = subprocess.Popen(
            [sys.executable, str(program)], env=environ, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start_worker
    for process in processes:
        process.kill()
        process.communicate()


def read_until(process, word):
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the worker ended ({process.wait()}) and never said {word!r}")


def test_workers_agree(start):
    work = """
say(cluster.num_workers(strategy), cluster.is_chief(strategy))
say(cluster.broadcast(strategy, 2**40 + 1 if index == 0 else None))
say(cluster.any_of(strategy, False), cluster.any_of(strategy, index == 1))
say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
if index == 0:
    time.sleep(1)
cluster.barrier(strategy)
"""
    workers = [start(index, work) for index in (0, 1)]
    outputs = [worker.communicate(timeout=60)[0].splitlines() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    same = [str(2**40 + 1), "False True", "True"]
    assert outputs == [["joined", "2 True", *same], ["joined", "2 False", *same]]


@pytest.mark.slow
def test_sigterm_ends_a_worker_that_has_joined(start):
    # TensorFlow puts a handler in its place that does nothing but write a line.
    work = """
cluster.barrier(strategy)
say("ready")
time.sleep(60)
"""
    chief, other = start(0, work), start(1, work)
    for worker in (chief, other):
        read_until(worker, "ready")
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait(timeout=5) for worker in (chief, other)] == [-signal.SIGTERM] * 2


def test_tf_config_with_a_chief_counts_it_first():
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}})
    assert read_workers(text) == Workers(("a:1", "b:1", "c:1"), 2)
    text = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    assert read_workers(text).index == 0


def met(workers, timeout=20):
    """Lets workers meet, each in a thread; returns what each raised."""
    raised = [None] * len(workers)

    def come(number):
        try:
            meet(workers[number], timeout)
        except InputError as error:
            raised[number] = str(error)

    threads = [threading.Thread(target=come, args=(n,)) for n in range(len(workers))]
    for thread in reversed(threads):  # the first one is late
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(60)
    return raised


def test_workers_meet_and_leave_the_port_free():
    addresses = tuple(f"localhost:{port}" for port in free_ports(3))
    for _ in range(3):
        assert met([Workers(addresses, index) for index in range(3)]) == [None] * 3
    with socket.socket() as server:  # without SO_REUSEADDR
        server.bind(("localhost", int(addresses[0].split(":")[1])))


@pytest.mark.parametrize("index, missing", [(0, "1"), (1, "0")])
def test_a_worker_that_does_not_come_is_named(addresses, index, missing):
    with pytest.raises(InputError, match="did not connect within 1 s") as refusal:
        meet(Workers(addresses, index), timeout=1)
    assert f"{missing} ({addresses[int(missing)]})" in str(refusal.value)


def test_workers_that_were_told_of_others_are_refused(addresses):
    strangers = [Workers(addresses, 0), Workers((addresses[0], "elsewhere:1"), 1)]
    first, second = met(strangers, timeout=2)
    assert "did not connect" in first
    assert "must name the same workers" in second


@pytest.mark.parametrize(
    "kind, message, lost",
    [
        (tf.errors.UnavailableError, "Collective ops is aborted by: Socket closed", True),
        (tf.errors.AbortedError, "different incarnation. It has likely restarted", True),
        (tf.errors.InternalError, "/job:worker/task:1 heartbeat timeout", True),
        (tf.errors.InternalError, "Collective ops is aborted by: expected type 0", False),
        (tf.errors.ResourceExhaustedError, "OOM when allocating tensor", False),
    ],
)
def test_a_lost_worker_is_told_from_other_errors(kind, message, lost):
    error = kind(None, None, message)
    assert means_lost_worker(error) is lost
    with pytest.raises(WorkerLost if lost else kind), noticing_lost_workers():
        raise error
    with pytest.raises(kind), noticing_lost_workers(has_others=False):
        raise error


def test_restart_gives_the_same_arguments(monkeypatch):
    calls = []
    monkeypatch.setattr(os, "execv", lambda *args: calls.append(args))
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "albert_keras", "pretrain"])
    restart()
    assert calls == [(sys.executable, [sys.executable, "-m", "albert_keras", "pretrain"])]
