import os
import re
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from data_pipeline import tensorflow_line
from data_pipeline.tensorflow_line import (
    ENVIRONMENT,
    LINES,
    VARIABLE,
    XLA_VARIABLE,
    Keras3Error,
    cuda_tools,
    needs_tf_keras,
    prepare_tensorflow,
    required_line,
    xla_flags,
)
from tests.repository import ROOT


@pytest.fixture
def on_line(monkeypatch):
    """Returns a function that pretends certain versions of packages and a module `tensorflow`."""

    def pretend(versions, keras_module=None):
        def version(name):
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(tensorflow_line.metadata, "version", version)
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
        if keras_module:
            keras = SimpleNamespace(Model=SimpleNamespace(__module__=keras_module))
            monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=keras))
        needs_tf_keras.cache_clear()

    yield pretend
    needs_tf_keras.cache_clear()


NEWER = {"keras": "3.15.1", "tf-keras": "2.21.0"}


_OURS_TO_CHANGE = """
import os
before = dict(os.environ)
import albert_keras, data_pipeline
from tensorflow import keras
albert_keras.Lamb
assert keras.Model.__module__ in ("keras.src.engine.training", "tf_keras.src.engine.training")
changed = {name for name in os.environ if os.environ[name] != before.get(name)}
print(*sorted(changed & {"TF_USE_LEGACY_KERAS", *%r}))
"""


@pytest.mark.parametrize("chosen", [None, "TF_CPU_ALLOCATOR_USE_BFC"])
def test_an_import_sets_variables_that_are_not_set(chosen):
    kept = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    kept.pop(VARIABLE, None)
    kept |= {chosen: "false"} if chosen else {}
    command = [sys.executable, "-c", _OURS_TO_CHANGE % list(ENVIRONMENT)]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, cwd=ROOT, check=True)
    changed = {*ENVIRONMENT} - {chosen} | ({VARIABLE} if needs_tf_keras() else set())
    assert done.stdout.split() == sorted(changed)
    assert needs_tf_keras() or done.stderr == ""  # newer TensorFlows have lines of their own


_LARGE_TENSORS = """
import resource
import albert_keras
import tensorflow as tf
for number in range(12):
    tf.fill([2**24], 1.0)  # 64 MiB, 16,384 pages
    if number == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_the_memory_of_large_tensors_is_used_again():
    command = [sys.executable, "-c", _LARGE_TENSORS]
    faults = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert int(faults) < 5_000


def test_keras_2_is_selected_for_later_versions(on_line, monkeypatch):
    on_line(NEWER, keras_module="tf_keras.src.engine.training")
    monkeypatch.setenv(VARIABLE, "0")
    prepare_tensorflow()
    assert os.environ[VARIABLE] == "1"


def test_keras_3_may_not_be_used_first(on_line, monkeypatch):
    on_line(NEWER, keras_module="keras.src.models.model")
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(Keras3Error, match=r"must be Keras 2.*Received: Keras 3\.15\.1.*Import"):
        prepare_tensorflow()


def test_the_lines_are_those_of_the_requirements():
    listing = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pins = re.findall(r'^    "(tensorflow==.*|tf-keras==.*)",', listing, re.MULTILINE)
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
            assert found.pop("tensorflow") == f"=={line.tensorflow}"
            assert found == (
                {"tf-keras": f"=={line.keras}"} if line.keras_package == "tf-keras" else {}
            )
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
