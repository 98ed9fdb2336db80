"""TensorFlow's start-up lines stay out of stderr, in Python and in commands."""

import os
import re
import subprocess
import sys

import pytest

from tests.keras_line import LINES_OF_IMPORT
from tests.repository import PACKAGES

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
    """Runs Python without the variable of TensorFlow's log; returns the lines of its stderr."""
    environment = {name: value for name, value in os.environ.items() if "TF_CPP" not in name}
    environment["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), *sys.path])
    run = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        run, capture_output=True, text=True, cwd=cwd, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if not line.startswith(LINES_OF_IMPORT)]


@pytest.mark.slow
def test_a_model_prints_nothing(tmp_path):
    assert stderr_of("-c", ENCODER + COMPILING, cwd=tmp_path) == []


@pytest.mark.slow
def test_predict_prints_its_own_lines_only(tiny_export, tmp_path):
    command = ["-m", "albert_keras", "fill-mask", tiny_export, "The old [MASK]."]
    lines = stderr_of(*command, cwd=tmp_path)
    [line] = [line for line in lines if not re.fullmatch(r"\.\.\. \d+ s", line)]
    assert re.fullmatch(r"predicting on (CPU|GPU|TPU).* in float32", line)
