import os
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from data_pipeline.tensorflow_line import (
    ENVIRONMENT,
    LINES,
    XLA_VARIABLE,
    cuda_tools,
    required_line,
    xla_flags,
)
from tests.keras_line import IS_KERAS_3
from tests.repository import ROOT

_PROGRAM = """
import os, resource
before = dict(os.environ)
import albert_keras, data_pipeline
import keras
import tensorflow as tf
assert issubclass(albert_keras.Lamb, keras.optimizers.Optimizer) and tf.keras.Model is keras.Model
print(*sorted(name for name in os.environ if os.environ[name] != before.get(name)))
for number in range(12):
    tf.fill([2**24], 1.0)  # 64 MiB, 16,384 pages
    if number == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize("chosen", [None, "TF_CPU_ALLOCATOR_USE_BFC"])
def test_an_import_sets_variables_that_are_not_set_and_memory_is_used_again(chosen):
    kept = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    kept |= {chosen: "false"} if chosen else {}
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, cwd=ROOT, check=True)
    *names, faults = done.stdout.split()
    assert names == sorted({*ENVIRONMENT} - {chosen})
    assert chosen is not None or int(faults) < 5_000
    assert IS_KERAS_3 or done.stderr == ""  # newer TensorFlows have lines of their own


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2.15 has one backend")
def test_keras_on_another_backend_is_one_error():
    code = "import keras; keras.config.backend = lambda: 'numpy'; import albert_keras; "
    command = [sys.executable, "-c", code + "albert_keras.Lamb"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert "InputError: Keras must run on TensorFlow. Received: numpy." in done.stderr


def test_the_lines_are_those_of_the_requirements():
    listing = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pins = re.findall(r'^    "(tensorflow==.*|keras>=.*)",', listing, re.MULTILINE)
    requirements = [Requirement(pin) for pin in pins]
    for line in LINES:
        for python in line.pythons:
            assert required_line(python) is line
            environment = {"python_version": ".".join(map(str, python))}
            found = {
                one.name: str(one.specifier)
                for one in requirements
                if one.marker.evaluate(environment)
            }
            assert found["tensorflow"] == f"=={line.tensorflow}"
            # TensorFlow 2.15 itself requires its Keras.
            assert line.keras == ("3" if "keras" in found else "2.15")
    assert required_line((3, 14)) is LINES[0]


def test_xla_finds_the_packages_of_nvidia_and_keeps_given_flags(tmp_path):
    assert cuda_tools([str(tmp_path)]) is None
    for name in ("cuda_nvcc", "cublas"):
        (tmp_path / "nvidia" / name).mkdir(parents=True)
    (tmp_path / "nvidia" / "cuda_nvcc" / "nvvm" / "libdevice").mkdir(parents=True)
    tools = cuda_tools(["", str(tmp_path)])
    assert tools == tmp_path / "nvidia" / "cuda_nvcc"
    flags = xla_flags("--xla_gpu_autotune_level=4 --other=1", tools).split()
    assert flags == [
        "--xla_gpu_autotune_level=4",
        "--other=1",
        "--xla_gpu_enable_triton_gemm=false",
        f"--xla_gpu_cuda_data_dir={tools}",
    ]


def test_xla_knows_our_flags():
    code = "import tensorflow as tf; tf.function(tf.identity, jit_compile=True)(1.0)"
    environ = os.environ | {XLA_VARIABLE: xla_flags("", None)}
    assert subprocess.run([sys.executable, "-c", code], env=environ).returncode == 0
