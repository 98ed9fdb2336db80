"""`albert-keras vocab` as a user runs it: progress, Ctrl-C, and what it prints."""

import os
import random
import shlex
import signal
import string
import subprocess
import sys
import time

import pytest

from albert_keras.cli import main
from data_pipeline.errors import InputError
from data_pipeline.tokenizers import vocabulary
from data_pipeline.tokenizers.vocabulary import train_vocabulary


@pytest.fixture(scope="module")
def long_corpus(tmp_path_factory):
    """Returns the path of a text whose training takes seconds."""
    draw = random.Random(3)
    words = ["".join(draw.choices(string.ascii_lowercase, k=6)) for _ in range(30_000)]
    path = tmp_path_factory.mktemp("long") / "my corpus.txt"
    lines = (" ".join(draw.choices(words, k=20)) for _ in range(15_000))
    path.write_text("\n\n".join(lines))
    return path


@pytest.mark.slow
def test_ctrl_c_ends_the_training_at_once_and_leaves_nothing(long_corpus, tmp_path):
    command = [sys.executable, "-m", "albert_keras", "vocab", "--corpus", long_corpus]
    command += ["--size", "4000", "--out", tmp_path / "out"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    pipes = {"stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        while "training on" not in (line := process.stderr.readline()):
            assert line, "ended before the training"
        started = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        shown = process.communicate(timeout=60)[1].splitlines()
        # Two seconds, and more on a busy machine.
        assert time.monotonic() - started < 15 and process.returncode == 130
    assert shown[-2] == "Interrupted. Nothing was saved; repeat the command to start again:"
    assert f" vocab --corpus '{long_corpus}' --size 4000 --out " in shown[-1]
    assert not list(tmp_path.iterdir())
    left = ["ps", "-o", "args=", "-s", str(process.pid)]  # in the session that the command began
    assert not subprocess.run(left, capture_output=True, text=True).stdout


def test_the_progress_and_the_characters_without_a_piece_are_reported(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("data_pipeline.progress._SECONDS_BETWEEN_LINES", 0)
    (tmp_path / "corpus.txt").write_text("many plain words here " * 5000 + "龘 鱻 鱻")
    command = ["vocab", "--corpus", f"{tmp_path}/corpus.txt", "--size", "86"]
    assert main([*command, "--required-characters", "§", "--out", f"{tmp_path}/out"]) == 0
    shown, log = capsys.readouterr()
    assert shown.splitlines()[1] == (
        "coverage: 99.9966 % of 90,003 characters; unknown: '鱻' 2, '龘' 1; "
        "--required-characters gives them pieces"
    )
    pieces = (tmp_path / "out" / "tokenizer.vocab").read_text(encoding="utf-8")
    assert "\n§\t" in pieces and "\n%\t" in pieces and "鱻" not in pieces
    assert "reading: 0.1 of 0.1 MB, ETA " in log
    assert "training on 0.1 million characters, about 2" in log


def test_the_next_command_builds_records_of_the_same_text_in_its_language(tmp_path, capsys):
    corpus = tmp_path / "كتب كثيرة.txt"
    corpus.write_text("جلس الرجل العجوز قرب النافذة ونظر إلى البحر. " * 400, encoding="utf-8")
    out = str(tmp_path / "out")
    command = ["vocab", "--corpus", str(corpus), "--size", "100", "--out", out]
    assert main([*command, "--language", "ar"]) == 0
    _, command = capsys.readouterr().out.strip().rsplit("next: albert-keras ", 1)
    words = shlex.split(command)
    words[words.index("--out") + 1] = f"{tmp_path}/records"
    assert main([*words, "--max-seq-length", "16"]) == 0


def test_a_training_process_that_is_killed_is_named_as_the_cause(
    tiny_corpus, tmp_path, monkeypatch
):
    def corpus():
        yield from tiny_corpus * 20  # more than is read before the training starts
        (process,) = started
        process.kill()
        process.wait()

    started, popen = [], subprocess.Popen
    monkeypatch.setattr(
        vocabulary.subprocess,
        "Popen",
        lambda *args, **settings: started.append(popen(*args, **settings)) or started[0],
    )
    with pytest.raises(InputError, match="ended before its work was done.*exit code -9"):
        train_vocabulary(corpus(), tmp_path / "out", 280)
    assert not list(tmp_path.iterdir())
