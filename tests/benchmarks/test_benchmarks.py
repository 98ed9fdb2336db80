"""Each benchmark on a small model or corpus: what is measured and shown, not how fast."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from albert_keras.training.process_memory import peak_mb
from tests.benchmarks import __main__ as command
from tests.benchmarks.contest import OURS, Contestant, Prepared, Work, contest_lines, hold_contest
from tests.benchmarks.measure import in_new_process, machine
from tests.benchmarks.shapes import make_shape
from tests.benchmarks.train import benchmark_train, train_lines
from tests.benchmarks.trainers import prepare_ours

WORK = Work("a step", tokens=40, flops=1e9)


def prepare_writer(log, name):
    def run():
        with open(log, "a") as file:
            file.write(name)

    return Prepared(run, {"versions": {"writer": "1.0"}, "weights": 7})


def prepare_nothing():
    raise ValueError("too large\nmore about it")


def prepare_to_die():
    return Prepared(lambda: os.kill(os.getpid(), signal.SIGKILL), {})


@pytest.mark.slow
def test_contestants_take_turns_and_those_that_fail_are_listed(tmp_path):
    log = tmp_path / "log"
    contestants = [
        Contestant(OURS, "float32", prepare_writer, (log, "a")),
        Contestant("unable", "float32", prepare_nothing),
        Contestant("dying", "float32", prepare_to_die),
        Contestant("absent", "float32", prepare_writer, (), ("no_such_package_here",)),
        Contestant("peer", "float32", prepare_writer, (log, "b")),
    ]
    peaks = {"float32": 1e12}
    contest = hold_contest(contestants, WORK, peaks, repeats=2, seconds=0)
    # A first run and two for warming up; then in each round one to wake up and one that counts.
    assert log.read_text() == "aaabbb" + "aabb" + "bbaa"
    ours, *failed, peer = contest["contestants"]
    assert [found["failed"] for found in failed] == [
        "ValueError: too large",
        "Its process was killed, or ran out of memory.",
        "not installed: pip install albert-keras[bench]",
    ]
    ratios = np.divide(peer["rounds"], ours["rounds"])
    assert peer["ratio"] == pytest.approx(
        {"median": ratios.mean(), "low": min(ratios), "high": max(ratios)}
    )
    assert ours["ratio"] is None and len(ours["rounds"]) == 2
    assert ours["tokens_per_second"]["high"] == pytest.approx(40 / min(ours["rounds"]))
    settings = {"repeats": 2}
    result = {"machine": machine(), "settings": settings, "peaks": peaks, "contest": contest}
    text = "\n".join(contest_lines(result))
    assert "unable, float32: ValueError: too large" in text and text.endswith("writer 1.0")


def test_a_new_process_forgets_the_memory_of_its_parent():
    held = b"x" * 300_000_000
    assert len(held) and peak_mb() > 300
    assert 5 < in_new_process(peak_mb) < 200


def test_layers_and_width_make_a_model():
    shape = make_shape("6x256", batch_size=32, max_seq_length=128)
    config = shape.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (6, 256, 4)
    assert (config.intermediate_size, config.vocab_size) == (1024, 30_000)
    assert (shape.tokens, shape.predictions) == (4096, 19)
    assert make_shape("albert-base").config.hidden_dropout_prob == 0


def test_options_are_the_parameters_of_a_benchmark(capsys):
    assert command.main(["train", "--peers", "keras"]) == 2
    assert "`keras` is not a known peer" in capsys.readouterr().err
    assert command.main(["nothing"]) == 2 and "train,learn,passes" in capsys.readouterr().err


@pytest.mark.slow
def test_our_step_trains():
    prepared = prepare_ours(make_shape("2x64", batch_size=2, max_seq_length=32), "float32")
    for _ in range(5):
        prepared.run()
    # It begins at log V, the loss of a model that knows nothing.
    assert prepared.facts["first_loss"] == pytest.approx(np.log(30_000), abs=0.3)
    assert prepared.facts["last_loss"] < prepared.facts["first_loss"]


@pytest.mark.slow
@pytest.mark.parametrize("replicas", ["1", "2"])
@pytest.mark.parametrize("part", ["kernels", "step"])
def test_on_a_gpu_at_most_20_gigabytes_move_outside_of_products(part, replicas):
    # In a process of its own: devices can only be set up before TensorFlow starts.
    words = ["passes", "--compile", part, "--replicas", replicas, "--json"]
    command = [sys.executable, "-m", "tests.benchmarks", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["gigabytes"] < 20


@pytest.mark.slow
def test_a_training_step_is_measured_beside_keras_nlp():
    result = benchmark_train("2x64", 2, 32, ["float32"], ["keras-nlp"], repeats=2, seconds=0.1)
    contest = result["contest"]
    assert not any("failed" in found for found in contest["contestants"])
    ours, peer = contest["contestants"]
    assert ours["facts"]["weights"] == peer["facts"]["weights"]
    assert peer["facts"]["last_loss"] < peer["facts"]["first_loss"]
    assert len(list(train_lines(result))) > 6
