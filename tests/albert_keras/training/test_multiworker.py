"""Two processes train one model, and go on when one of them was lost."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.pretrain import pretrain


@pytest.fixture
def start(tmp_path, tiny_records):
    """Returns a function that starts a worker with settings, as the command line does."""
    ports = random.sample(range(20_000, 30_000), 50)
    addresses = [f"localhost:{port}" for port in ports if is_free(port)][:2]
    processes = []

    def start_worker(index, config, out):
        (tmp_path / "config.json").write_text(config.model_dump_json(exclude_unset=True))
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        command = [sys.executable, "-m", "albert_keras", "pretrain", "--strategy", "multiworker"]
        command += ["--data", tiny_records, "--out", out, "--config", tmp_path / "config.json"]
        with open(tmp_path / f"worker-{index}.txt", "a") as log:
            process = subprocess.Popen(
                command,
                env=os.environ | {"TF_CONFIG": json.dumps(cluster), "CUDA_VISIBLE_DEVICES": ""},
                stderr=log,
                stdout=subprocess.DEVNULL,
            )
        processes.append(process)
        return process

    yield start_worker
    for process in processes:
        process.kill()
        process.wait()


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("localhost", port)) != 0


def ended(process, tmp_path, seconds=240):
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        said = [(tmp_path / f"worker-{index}.txt").read_text()[-1500:] for index in (0, 1)]
        raise AssertionError("\n---\n".join(said)) from None


def with_settings(tiny_training, **training):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"report_every": 1, **training}
    return type(tiny_training)(**values)


def losses(run):
    return [line["loss"] for line in read_log(run)]


@pytest.mark.slow
def test_two_workers_train_to_the_losses_of_one(start, tiny_records, tiny_training, tmp_path):
    config = with_settings(tiny_training, steps=8, checkpoint_every=4)
    workers = [start(index, config, tmp_path / "two") for index in (0, 1)]
    assert [ended(worker, tmp_path) for worker in workers] == [0, 0]
    one = pretrain(tiny_records, tmp_path / "one", config).path
    assert losses(tmp_path / "two") == pytest.approx(losses(one), rel=1e-5)
    assert Run.open(tmp_path / "two").checkpoints.steps() == [4, 8]


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_worker_comes_back_and_the_run_goes_on(
    start, tiny_records, tiny_training, tmp_path, lost
):
    config = with_settings(tiny_training, steps=400, checkpoint_every=20)
    out = tmp_path / "two"
    workers = [start(index, config, out) for index in (0, 1)]
    wait_for(lambda: (out / "checkpoints" / "step-00000040" / "digests.json").exists())
    workers[lost].kill()
    workers[lost].wait()
    workers[lost] = start(lost, config, out)
    assert [ended(worker, tmp_path) for worker in workers] == [0, 0]
    assert "resuming" in (tmp_path / f"worker-{lost}.txt").read_text()
    one = pretrain(tiny_records, tmp_path / "one", config).path
    assert losses(out) == pytest.approx(losses(one), rel=1e-5)


@pytest.mark.slow
def test_sigterm_to_one_worker_stops_both_saved(start, tiny_training, tmp_path):
    config = with_settings(tiny_training, steps=5000, checkpoint_every=1000)
    out = tmp_path / "two"
    workers = [start(index, config, out) for index in (0, 1)]
    wait_for(lambda: len(read_log(out)) > 5)
    workers[1].send_signal(signal.SIGTERM)
    assert [ended(worker, tmp_path, 30) for worker in workers] == [143, 143]
    (step,) = Run.open(out).checkpoints.steps()
    assert len(read_log(out)) == step
