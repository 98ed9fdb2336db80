"""Each benchmark on a small model or corpus: what is measured and shown, not how fast."""

import numpy as np
import pytest

from albert_keras.training.process_memory import peak_mb
from tests.benchmarks import __main__ as command
from tests.benchmarks.contest import OURS, Contestant, Prepared, contest_lines, hold_contest
from tests.benchmarks.measure import in_new_process
from tests.benchmarks.shapes import make_shape


def prepare_writer(log, name):
    def run():
        with open(log, "a") as file:
            file.write(name)

    return Prepared(run, {"weights": 7, "first_loss": 2.0, "last_loss": 1.0})


@pytest.mark.slow
def test_contestants_take_turns(tmp_path):
    log = tmp_path / "log"
    names = {OURS: "a", "peer": "b"}
    contestants = [
        Contestant(name, "float32", prepare_writer, (log, letter)) for name, letter in names.items()
    ]
    ours, peer = hold_contest(contestants, repeats=2, seconds=0)
    # A first run and two for warming up; then in each round one to wake up and one that counts.
    assert log.read_text() == "aaabbb" + "aabb" + "bbaa"
    assert len(ours.rounds) == 2 and ours.seconds == sum(ours.rounds) / 2
    ratios = np.divide(peer.rounds, ours.rounds)
    *_, last = contest_lines([ours, peer], tokens=40)
    assert f"{ratios.mean():.2f} [{min(ratios):.2f}..{max(ratios):.2f}]" in last
    assert last.startswith("  peer") and last.split()[-3:] == ["7", "2.00", "1.00"]


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
    assert command.main(["nothing"]) == 2


@pytest.mark.slow
def test_our_step_trains_and_is_measured(capsys):
    words = ["--model", "2x64", "--batch-size", "2", "--max-seq-length", "32"]
    words += ["--precision", "float32", "--compile", "kernels", "--compile", "none"]
    assert command.main(["train", *words, "--repeats", "2", "--seconds", "0.1"]) == 0
    for line in capsys.readouterr().out.splitlines()[-2:]:
        first, last = map(float, line.split()[-2:])
        # It begins at log V, the loss of a model that knows nothing.
        assert line.startswith("  ours") and last < first
        assert first == pytest.approx(np.log(30_000), abs=0.3)
