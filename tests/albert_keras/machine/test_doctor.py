"""Each fault of a machine is named, with what fixes it."""

import json
import os
from importlib import metadata

import pytest

from albert_keras.cli import main
from albert_keras.machine import doctor
from albert_keras.machine.doctor import (
    FAULT,
    OK,
    WARNING,
    gpu_finding,
    memory_finding,
    package_finding,
    start_tensorflow,
)
from data_pipeline.tensorflow_line import LINES, required_line

DEFAULT, NEWER = LINES


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture
def smi(tmp_path):
    """Returns a function that writes a program in place of `nvidia-smi`, and judges without a GPU
    that TensorFlow can use.
    """

    def judge(answer, code=0):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{answer}'\nexit {code}\n")
        program.chmod(0o755)
        return gpu_finding(0, str(program))

    return judge


def test_a_machine_without_a_driver_and_one_whose_driver_does_not_work(smi, tmp_path):
    found = gpu_finding(0, str(tmp_path / "no-nvidia-smi"))
    assert found.state == OK and "on the CPU" in found.text
    answer = "Failed to initialize NVML: Driver/library version mismatch"
    found = smi(answer, code=9)
    assert found.state == FAULT and answer in found.text and "restart" in found.fix


def test_a_gpu_that_tensorflow_cannot_use(smi, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = smi("GPU 0: Tesla T4")
    assert found.state == FAULT and "Tesla T4" in found.text and "525.60" in found.text
    assert found.fix == f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    hidden = smi("GPU 0: Tesla T4")
    assert hidden.state == WARNING and hidden.fix == "unset CUDA_VISIBLE_DEVICES"


def test_xla_needs_its_assembler_on_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "cuda_tools", lambda: None)
    monkeypatch.setattr(doctor, "_CUDA", tmp_path / "libdevice")
    found = gpu_finding(1)
    assert found.state == WARNING and "no `ptxas`" in found.text and "and-cuda" in found.fix
    (tmp_path / "libdevice").mkdir()
    assert gpu_finding(1).state == OK


@pytest.mark.parametrize(
    "line, tensorflow, keras, fix",
    [
        (DEFAULT, "2.15.0", "2.15.0", None),
        (NEWER, "2.21.0", "3.15.1", None),
        (NEWER, "2.21.0", "2.15.0", "pip install 'keras==3.*'"),
        (DEFAULT, None, "2.15.0", "pip install 'tensorflow==2.15.*'"),
    ],
)
def test_tensorflow_and_keras_must_be_those_of_the_line(line, tensorflow, keras, fix):
    versions = {"tensorflow": tensorflow, "keras": keras, "numpy": "1.26.4"}

    def version(name):
        if versions.get(name) is None:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    found = package_finding(version, line)
    assert found.state == (OK if fix is None else FAULT) and found.fix == fix
    assert "numpy 1.26.4" in found.text


def test_memory_is_that_of_the_container(tmp_path):
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    assert memory_finding(tmp_path).state == WARNING  # not known
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n")
    (group / "memory.max").write_text("max\n")
    assert memory_finding(tmp_path).state == OK
    (group / "memory.max").write_text("4000000000\n")
    (group / "memory.current").write_text("2000000000\n")
    assert memory_finding(tmp_path).state == WARNING
    (group / "memory.current").write_text("3500000000\n")
    found = memory_finding(tmp_path)
    assert found.state == FAULT and "500 MB available of 4 GB" in found.text
    assert "albert-keras pretrain --dry-run" in found.fix


@pytest.mark.parametrize(
    "code, error",
    [
        ("raise ImportError('libcudart.so.12: no such file')", "ImportError: libcudart.so.12"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "lacks instructions"),
        ("import time; time.sleep(60)", "no result within"),
        ("import sys; sys.exit(3)", "exit code 3"),
    ],
)
def test_a_tensorflow_that_fails_is_reported(code, error):
    found, why = start_tensorflow(code, timeout=1 if "sleep" in code else 60)
    assert error in why and not found


def test_the_command_exits_with_0_or_1(monkeypatch, capsys):
    good = {"devices": "CPU with 2 cores", "num_gpus": 0, "precision": "float32"}
    monkeypatch.setattr(doctor, "start_tensorflow", lambda: (good, None))
    monkeypatch.setattr(doctor, "gpu_finding", lambda num_gpus: doctor.Finding("GPU", OK, "none"))
    assert main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "CPU with 2 cores, precision float32" in shown
    assert "0 faults" in shown.splitlines()[-1]
    monkeypatch.setattr(doctor, "start_tensorflow", lambda: ({}, "ImportError: no"))
    assert main(["doctor", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    (fault,) = [one for one in result["findings"] if one["state"] == FAULT]
    assert fault["topic"] == "TensorFlow" and result["counts"]["fault"] == 1


@pytest.mark.slow
def test_this_machine_works():
    found, error = start_tensorflow()
    assert error is None and found["devices"] and found["precision"]
