"""Each fault of a machine is named, with the command that fixes it."""

import json
import os
import sys
from importlib import metadata

import pytest

from albert_keras.cli import main
from albert_keras.machine import doctor
from albert_keras.machine.doctor import (
    FAULT,
    OK,
    WARNING,
    ask_driver,
    gpu_finding,
    gpu_memory,
    keras_findings,
    package_findings,
    python_finding,
)
from albert_keras.machine.probe import Probe, run_probe
from data_pipeline.tensorflow_line import LINES, required_line

DEFAULT, NEWER = LINES
GOOD = Probe(f"{required_line().keras}.0", "CPU with 2 cores", 0, "float32", {"float32": 2e11}, 3.0)


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture
def smi(tmp_path):
    """Returns a function that writes a program in place of `nvidia-smi`."""

    def write(answer, code=0):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{answer}'\nexit {code}\n")
        program.chmod(0o755)
        return ask_driver(str(program))

    return write


@pytest.fixture
def fake_tensorflow(tmp_path):
    """Returns a function that gives a path of modules with this code as TensorFlow."""

    def path(code):
        (tmp_path / "tensorflow.py").write_text(code)
        return [str(tmp_path), *sys.path]

    return path


def installed(**versions):
    def version(name):
        if name.replace("-", "_") not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name.replace("-", "_")]

    return version


def test_a_machine_without_driver_works_and_names_the_command(tmp_path):
    assert ask_driver(str(tmp_path / "no-nvidia-smi")) is None
    found = gpu_finding(None, usable=0)
    assert found.state == OK and "on the CPU" in found.text
    assert "sudo apt-get install nvidia-driver-" in found.text


@pytest.mark.parametrize(
    "answer, fix",
    [
        ("NVIDIA-SMI has failed because it could not communicate with the driver.", "--reinstall"),
        ("Failed to initialize NVML: Driver/library version mismatch", "sudo reboot"),
    ],
)
def test_a_broken_driver_is_quoted(smi, answer, fix):
    found = gpu_finding(smi(answer, code=9), usable=0)
    assert found.state == FAULT and answer in found.text and fix in found.fix


def test_a_driver_that_is_too_old_must_be_updated(smi):
    found = gpu_finding(smi("Tesla T4, 470.57.02, 15360 MiB"), usable=0)
    assert found.state == FAULT and "470.57.02" in found.text and "525.60" in found.text


def test_a_driver_without_the_cuda_libraries(smi):
    driver = smi("Tesla T4, 535.104.05, 15360 MiB")
    found = gpu_finding(driver, usable=0, environ={})
    assert found.state == FAULT and found.fix == (
        f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
    )
    hidden = gpu_finding(driver, usable=0, environ={"CUDA_VISIBLE_DEVICES": "-1"})
    assert hidden.state == WARNING and hidden.fix == "unset CUDA_VISIBLE_DEVICES"
    assert gpu_finding(driver, usable=1, environ={}).state == OK
    found = gpu_finding(driver, usable=1, has_compiler=False)
    assert found.state == WARNING and "no `ptxas`" in found.text and "and-cuda" in found.fix
    assert gpu_memory(driver) == 15360 * 2**20 and gpu_memory(None) is None
    # TensorFlow does not start for another reason: nothing is wrong with the driver.
    assert gpu_finding(driver, usable=None, environ={}).state == OK


@pytest.mark.parametrize(
    "line, environ, loaded, state, fix",
    [
        (DEFAULT, {}, "2.15.0", OK, None),
        (NEWER, {}, "3.15.1", OK, None),
        (DEFAULT, {}, "3.3.3", FAULT, "pip install 'keras==2.15.*'"),
        (NEWER, {}, "2.15.0", FAULT, "pip install 'keras==3.*'"),
        (NEWER, {"KERAS_BACKEND": "jax"}, "3.15.1", FAULT, "unset KERAS_BACKEND"),
    ],
)
def test_keras_must_be_that_of_the_line(line, environ, loaded, state, fix):
    (found,) = keras_findings(loaded, environ, line)
    assert (found.topic, found.state, found.fix) == ("Keras", state, fix)


def test_wrong_and_missing_packages_are_named_with_what_installs_them():
    needed = {
        "albert-keras": ["numpy<2,>=1.26", "typer>=0.12", 'apache-beam<3; extra == "beam"'],
        "tensorflow": ["keras<2.16,>=2.15.0", 'tensorflow-intel; platform_system == "Windows"'],
    }
    version = installed(albert_keras="0.1.0", tensorflow="2.15.1", numpy="2.1.0", keras="2.15.0")
    found = {one.fix: one for one in package_findings(version, needed.get)}
    assert found["pip install 'numpy<2,>=1.26'"].text.startswith("numpy 2.1.0 installed")
    assert found["pip install 'typer>=0.12'"].state == FAULT
    assert len([one for one in found.values() if one.state == FAULT]) == 2


def test_the_packages_of_this_environment_are_right():
    assert not [one for one in package_findings() if one.state == FAULT]
    for minor in (10, 11, 12, 13):
        assert python_finding((3, minor, 1)).state == OK
    found = python_finding((3, 14, 0))
    assert found.state == FAULT and "2.21 is released for Python 3.12 and 3.13" in found.text
    assert python_finding((3, 9, 1)).state == FAULT


def test_too_little_disk_names_the_command(tmp_path):
    found = doctor.disk_finding(tmp_path / "runs" / "a", least=1e18)
    assert found.state == FAULT and "1,000,000 TB are needed" in found.text
    assert f"albert-keras runs list {tmp_path}" in found.fix
    assert doctor.disk_finding(tmp_path / "runs" / "a", least=1).state == OK
    assert not list(tmp_path.iterdir())


def test_memory_is_that_of_the_container(tmp_path):
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 9000000 kB\n")
    (group / "memory.max").write_text("max\n")
    assert doctor.memory_finding(doctor.read_memory(tmp_path)).state == OK
    (group / "memory.max").write_text("2000000000\n")
    (group / "memory.current").write_text("1500000000\n")
    found = doctor.memory_finding(doctor.read_memory(tmp_path))
    assert found.state == FAULT and "500 MB available of 2 GB" in found.text
    assert "albert-keras pretrain --dry-run" in found.fix
    assert doctor.memory_finding(doctor.Memory(int(4e9), int(2e9))).state == WARNING


def test_a_processor_without_avx_is_a_fault(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "cpuinfo").write_text("processor: 0\nflags\t\t: fpu sse2\n")
    assert doctor.processor_finding(tmp_path).state == FAULT


@pytest.mark.parametrize(
    "code, error",
    [
        ("raise ImportError('libcudart.so.12: no such file')", "ImportError: libcudart.so.12"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "lacks instructions"),
        ("import time; time.sleep(60)", "no result within"),
    ],
)
def test_a_tensorflow_that_fails_is_reported(fake_tensorflow, code, error):
    timeout = 1 if "sleep" in code else 60
    probe = run_probe(fake_tensorflow(code), timeout)
    assert error in probe.error and probe.gpus is None
    found = doctor.tensorflow_findings(probe)
    assert found[0].state == FAULT and found[0].fix.startswith("pip install --force-reinstall")
    (found, *_) = doctor.tensorflow_findings(probe, is_explained=True)
    assert found.fix == "correct the faults above first"


def test_the_command_exits_with_0_or_1(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(doctor, "run_probe", lambda: GOOD)
    monkeypatch.setattr(doctor, "ask_driver", lambda: None)
    memory = doctor.Memory(int(32e9), int(16e9))
    monkeypatch.setattr(doctor, "read_memory", lambda: memory)
    assert main(["doctor", "--out", f"{tmp_path}/runs", "--disk", "1MB"]) == 0
    shown = capsys.readouterr().out
    assert "✔ speed" in shown and "0 faults" in shown.splitlines()[-1]
    command = ["doctor", "--out", f"{tmp_path}/runs", "--disk", "999999TB", "--json"]
    assert main(command) == 1
    result = json.loads(capsys.readouterr().out)
    (fault,) = [one for one in result["findings"] if one["state"] == FAULT]
    assert fault["topic"] == "disk" and result["counts"]["fault"] == 1
    assert result["measured"]["peaks"] == {"float32": 2e11}
    assert main(["doctor", "--disk", "many"]) == 2
    assert "`--disk` must be a size" in capsys.readouterr().err


@pytest.mark.slow
def test_this_machine_works():
    probe = run_probe()
    assert probe.error is None
    assert probe.keras.startswith(required_line().keras) and probe.peaks["float32"] > 0
