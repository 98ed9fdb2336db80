"""TensorFlow's start-up lines stay out of stderr, in Python and in commands."""

import os
import re
import subprocess
import sys

import pytest

from tests.repository import PACKAGES, ROOT, needs_repository

#: Builds an encoder; the package is imported before TensorFlow.
ENCODER = """
from albert_keras import AlbertConfig, AlbertEncoder
import tensorflow as tf

AlbertEncoder(AlbertConfig.from_name("albert-tiny"))({"input_ids": tf.constant([[2, 48, 25, 3]])})
"""
#: Compiles a program, as the first training step on a CPU does.
COMPILING = """
from albert_keras.layers.kernels import compiled_kernels, kernel

with compiled_kernels():
    assert kernel(lambda x: x + 1)(tf.constant([1.0])).numpy() == 2
"""


def stderr_of(*arguments, cwd):
    """Runs Python without the variable of TensorFlow's log; returns what it writes to stderr."""
    environment = {name: value for name, value in os.environ.items() if "TF_CPP" not in name}
    environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), *sys.path])
    run = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        run, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def snippets(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_a_model_prints_nothing(tmp_path):
    assert stderr_of("-c", ENCODER + COMPILING, cwd=tmp_path) == ""


def test_predict_prints_its_own_lines_only(tiny_export, tmp_path):
    command = ["-m", "albert_keras", "predict", tiny_export, "The old [MASK]."]
    lines = stderr_of(*command, cwd=tmp_path).splitlines()
    lines = [line for line in lines if not re.fullmatch(r"\.\.\. \d+ s", line)]
    assert lines[0] == "starting" and len(lines) == 2
    assert re.fullmatch(r"predicting on (CPU|GPU|TPU).*", lines[1])


@pytest.mark.slow
@needs_repository
def test_the_quick_start_prints_nothing_and_pretrain_its_own_lines_only(
    tiny_corpus, tiny_vocabulary, tmp_path
):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.txt").write_text("\n".join(tiny_corpus))
    (tmp_path / "tokenizer").symlink_to(tiny_vocabulary.path)
    (code,) = [code for code in snippets("docs/commands.md") if "build_records(" in code]
    code = code.replace("max_seq_length=128", "max_seq_length=32").replace(
        "albert-mini", "albert-tiny"
    )
    code = code.replace("steps=2000", "steps=2").replace("records-heldout/", "records/")
    assert stderr_of("-c", code, cwd=tmp_path) == ""
    command = "-m albert_keras pretrain --data records --out runs/x --size albert-tiny --steps 2"
    shown = stderr_of(*command.split(), cwd=tmp_path)
    assert "on CPU with" in shown
    foreign = r"WARNING:|absl|tensorflow|oneDNN|cuda|XLA|TF-TRT|[IWEF]\d{4} "
    assert not re.search(foreign, shown, re.IGNORECASE)
