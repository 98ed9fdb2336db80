"""`benchmark data` and `benchmark read` as a user gives them."""

import json
import os

import pytest

from albert_keras.cli import benchmark
from albert_keras.cli.output import finish
from data_pipeline.errors import InputError


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
    yield
    finish()


@pytest.fixture
def run(capsys):
    """Returns a function that runs a command and returns what it prints on stdout and stderr."""

    def run(*words, exit_code=0):
        with pytest.raises(SystemExit) as ended:
            benchmark.app([str(word) for word in words])
        assert ended.value.code == exit_code
        return capsys.readouterr()

    return run


@pytest.fixture
def corpus(tiny_corpus, tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n\n".join(tiny_corpus))
    return path


def test_a_build_is_measured_and_the_vocabulary_trained_first(corpus, run):
    words = ["--corpus", corpus, "--vocab-size", 280, "--max-seq-length", 32, "--repeats", 1]
    done = run("data", *words, "--copies", 2, "--workers", 1)
    for word in ("machine: ", "V = 280", "SentencePiece alone", "copies 2", "masking", "100.0%"):
        assert word in done.out
    assert "More workers" not in done.out
    assert "training a vocabulary" in done.err and "run 3 of 3" in done.err
    assert [path.name for path in corpus.parent.iterdir()] == ["corpus.txt"]


def test_reading_is_measured(tiny_records, run):
    words = ["--batch-size", 4, "--steps", 2, "--repeats", 1, "--no-model"]
    done = run("read", "--records", tiny_records, *words)
    for word in (
        "S = 32, P = 5",
        "bytes only",
        "dynamic masks cost",
        "first batch at step 1000000",
    ):
        assert word in done.out
    assert "consumes" not in done.out


def test_the_result_is_json(tiny_records, run):
    words = ["--batch-size", 4, "--steps", 2, "--repeats", 1, "--no-model", "--json"]
    result = json.loads(run("read", "--records", tiny_records, *words).out)
    assert result["records"]["max_seq_length"] == 32 and result["training"] is None


def test_records_that_are_not_there_are_refused(tmp_path, run):
    with pytest.raises(InputError, match="is not a folder of records"):
        run("read", "--records", tmp_path / "nothing")


@pytest.mark.parametrize(
    "words", [["data", "--copies", "0"], ["read", "--batch-size", "0"], ["data", "x"]]
)
def test_a_wrong_call_is_refused(words, run):
    assert run(*words, exit_code=2).err
