"""`albert-keras plan` as a user gives it."""

import json
import os
import subprocess
import sys

import pytest

from albert_keras.cli import main

WORDS = ["plan", "--size", "albert-base", "--memory", "12GB", "--batch", "4096"]
WORDS += ["--corpus-size", "16GB"]


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


def test_a_plan_is_printed(capsys):
    assert main([*WORDS, "--device", "v100"]) == 0
    told = capsys.readouterr().out
    for words in ("12 GB per replica", "blocks kept", "assumed", "albert-keras pretrain --config"):
        assert words in told


def test_a_plan_is_json(capsys):
    assert main([*WORDS, "--steps", "10", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["steps"] == 10 and plan["chosen"]["memory"]["total"] <= 0.9 * 12e9
    assert len(plan["fits"]) == 2 and plan["assumptions"]["mfu"]


def test_the_table_is_printed(capsys):
    assert main(["plan", "--table", "--memory", "12GB", "--precision", "float32", "-v"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "published 64 32 16 14 12 6" in [" ".join(row.split()) for row in rows]


@pytest.mark.parametrize(
    "words, says",
    [
        (["--memory", "12"], "`--memory` must be a size"),
        (["--corpus-size", "much"], "`--corpus-size` must be a size"),
        (["--device", "abacus"], "not a known device"),
        (["--memory", "100MB"], "`--memory` must be at least"),
        (["--batch", "100", "--device", "tpu-v3-8"], "`--batch` must be a multiple of the 8"),
        (["--max-seq-length", "8193"], "less than or equal to 8192"),
        *[
            (["--table", *words], f"`{words[0]}` must not be given with `--table`")
            for words in (
                ["--size", "albert-base"],
                ["--max-seq-length", "128"],
                ["--corpus-size", "1GB"],
                ["--bytes-per-piece", "3"],
                ["--measure"],
                ["--tflops", "1"],
            )
        ],
        (["--mfu", "2"], "mfu"),
        (["--batch", "0"], "batch"),
    ],
)
def test_a_mistake_is_one_error(words, says, capsys):
    assert main(["plan", *words]) == 2
    done = capsys.readouterr()
    assert not done.out and done.err.lower().count("error:") == 1 and says in done.err


def test_the_peak_is_measured_on_request(capsys, monkeypatch):
    from albert_keras.training.cost import peak

    rates = {True: 2e11, False: 9e12}  # of the CPU, and of a GPU that the machine may have
    monkeypatch.setattr(peak, "measure_peak", lambda precision, seconds, on_cpu: rates[on_cpu])
    assert main([*WORDS, "--measure"]) == 0
    assert "0.2 TFLOP/s per replica, measured here" in capsys.readouterr().out
    assert main([*WORDS, "--measure", "--device", "v100"]) == 0
    assert "9 TFLOP/s per replica, measured here" in capsys.readouterr().out


def test_planning_loads_no_tensorflow():
    program = (
        "import sys; from albert_keras.cli import main; "
        "words = ['plan', '--corpus-size', '1GB']; assert main(words) == 0; "
        "assert main([*words, '--hours', '2', '--tflops', '1']) == 0; "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
