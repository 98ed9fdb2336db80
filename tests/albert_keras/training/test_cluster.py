"""Two processes on this machine are two workers, and go on when one of them was lost."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest
import tensorflow as tf

from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.cluster import (
    WorkerLost,
    Workers,
    means_lost_worker,
    noticing_lost_workers,
    read_workers,
)
from albert_keras.training.pretrain import pretrain

#: What a worker agrees on with the others, and prints.
AGREE = """
import signal, time
from albert_keras.training import cluster
from albert_keras.training.strategy import build_strategy
strategy = build_strategy("multiworker")
index = strategy.cluster_resolver.task_id
print(cluster.num_workers(strategy), cluster.is_chief(strategy))
print(cluster.broadcast(strategy, 2**40 + 1 if index == 0 else None))
print(cluster.any_of(strategy, False), cluster.any_of(strategy, index == 1))
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
cluster.barrier(strategy)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def addresses():
    """Returns two addresses of this machine at which nobody listens."""
    # Below the ports that the system hands out itself: those may be gone again when they are used.
    ports = []
    while len(ports) < 2:
        port = random.randrange(20000, 30000)
        with socket.socket() as free:
            if port not in ports and free.connect_ex(("localhost", port)):
                ports.append(port)
    return tuple(f"localhost:{port}" for port in ports)


@pytest.fixture
def start(addresses, tmp_path):
    """Returns a function that starts a worker: (index, arguments of Python) -> Popen."""
    processes = []

    def start_worker(index, *arguments):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": list(addresses)}, "task": task}
        environ = {"TF_CONFIG": json.dumps(config), "CUDA_VISIBLE_DEVICES": ""}
        environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": os.pathsep.join(sys.path)}
        with open(tmp_path / f"worker-{index}.txt", "a") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                env=os.environ | environ,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        processes.append(process)
        return process

    yield start_worker
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_workers_agree_and_sigterm_ends_them(start):
    # TensorFlow puts a handler in its place that does nothing but write a line.
    workers = [start(index, "-c", AGREE) for index in (0, 1)]
    for worker, chief in zip(workers, ("True", "False"), strict=True):
        said = [worker.stdout.readline().strip() for _ in range(5)]
        assert said == [f"2 {chief}", str(2**40 + 1), "False True", "True", "ready"]
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    assert [worker.wait(timeout=5) for worker in workers] == [-signal.SIGTERM] * 2


# Two workers that train.


@pytest.fixture
def begin(start, tiny_records, tiny_training, tmp_path):
    """Returns the settings of a run, and a function that begins or joins it: index -> Popen."""

    def settings(**training):
        training = tiny_training.training.replace(report_every=1, **training)
        config = tiny_training.replace(training=training)
        (tmp_path / "config.json").write_text(config.model_dump_json(exclude_unset=True))
        return config

    words = ["-m", "albert_keras", "pretrain", "--strategy", "multiworker", "--data", tiny_records]
    words += ["--out", tmp_path / "two", "--config", tmp_path / "config.json"]
    return settings, lambda index: start(index, *words)


def ended(process, tmp_path, seconds=240):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        said = [(tmp_path / f"worker-{index}.txt").read_text()[-1500:] for index in (0, 1)]
        raise AssertionError("\n---\n".join(said)) from None


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_worker_comes_back_and_the_run_ends_in_the_losses_of_one(
    begin, tiny_records, tmp_path, lost
):
    settings, begin_worker = begin
    # Workers on CPUs compile nothing, and kernels that one worker compiles round in another way.
    config = settings(steps=200, checkpoint_every=20, compile="none")
    out = tmp_path / "two"
    workers = [begin_worker(index) for index in (0, 1)]
    wait_for(lambda: (out / "checkpoints" / "step-00000040" / "digests.json").exists())
    workers[lost].kill()
    workers[lost].wait()
    workers[lost] = begin_worker(lost)
    assert [ended(worker, tmp_path) for worker in workers] == [0, 0]
    assert "resuming" in (tmp_path / f"worker-{lost}.txt").read_text()
    one = pretrain(tiny_records, tmp_path / "one", config).path
    two, one = ([line["loss"] for line in read_log(run)] for run in (out, one))
    assert two[:50] == pytest.approx(one[:50], rel=1e-6)
    assert two == pytest.approx(one, rel=1e-4)  # the updates enlarge differences of rounding


@pytest.mark.slow
def test_sigterm_to_one_worker_stops_both_saved(begin, tmp_path):
    settings, begin_worker = begin
    settings(steps=5000, checkpoint_every=1000)
    out = tmp_path / "two"
    workers = [begin_worker(index) for index in (0, 1)]
    wait_for(lambda: len(read_log(out)) > 5)
    workers[1].send_signal(signal.SIGTERM)
    assert [ended(worker, tmp_path, 30) for worker in workers] == [143, 143]
    (step,) = Run.open(out).checkpoints.steps()
    assert len(read_log(out)) == step


# Before TensorFlow starts, and when it fails.


def test_tf_config_with_a_chief_counts_it_first():
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}})
    assert read_workers(text) == Workers(("a:1", "b:1", "c:1"), 2)
    text = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    assert read_workers(text).index == 0


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
