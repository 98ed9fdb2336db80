"""Checks NVIDIA GPUs and their driver, whether or not TensorFlow starts."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from data_pipeline.tensorflow_line import required_line

_TOPIC = "GPU"
#: The oldest driver for CUDA 12, which every supported TensorFlow is built with.
_OLDEST_DRIVER = (525, 60)
_INSTALL = "sudo apt-get install nvidia-driver-535 && sudo reboot"
_REINSTALL = "sudo apt-get install --reinstall nvidia-driver-535 && sudo reboot"
_NVIDIA, _DISPLAY = "0x10de", "0x03"
_QUERY = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")


class Driver(NamedTuple):
    """The answer of `nvidia-smi`."""

    works: bool
    answer: str  # what it printed, without empty lines


def ask_driver(program: str = "nvidia-smi", timeout: float = 20) -> Driver | None:
    """Asks the driver for its GPUs; None if the program is not installed."""
    try:
        done = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=timeout)
    except FileNotFoundError:
        return None
    except subprocess.TimeoutExpired:
        return Driver(False, f"no answer within {timeout:g} s")
    except OSError as error:
        return Driver(False, str(error))
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    works = done.returncode == 0 and bool(lines) and "," in lines[0]
    return Driver(works, "\n".join(lines) or f"exit code {done.returncode}")


def has_gpu(root: Path = Path("/")) -> bool:
    """Returns whether Linux, with its files below `root`, sees an NVIDIA GPU, driver or not."""
    if any((root / "dev").glob("nvidia[0-9]*")):
        return True
    for device in (root / "sys" / "bus" / "pci" / "devices").glob("*"):
        try:
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith(_DISPLAY):
            return True
    return False


def gpu_finding(
    driver: Driver | None,
    has_gpu: bool,
    usable: int | None,
    environ: Mapping[str, str] = os.environ,
) -> Finding:
    """Judges the GPUs of this machine.

    Args:
        driver: Answer of `ask_driver`.
        has_gpu: Whether there is an NVIDIA GPU.
        usable: Number of GPUs that TensorFlow can use; None if it does not start.
        environ: The environment of the process.
    """
    if usable:
        return Finding(_TOPIC, OK, f"TensorFlow uses {usable} GPU{'s' if usable > 1 else ''}")
    if driver is None:
        if has_gpu:
            text = "there is an NVIDIA GPU, but its driver is not installed"
            return Finding(_TOPIC, FAULT, text, _INSTALL)
        text = f"no NVIDIA GPU and no driver: everything runs on the CPU (driver: {_INSTALL})"
        return Finding(_TOPIC, OK, text)
    if not driver.works:
        reason = driver.answer.splitlines()[0]
        text = f"the NVIDIA driver is broken. nvidia-smi: {reason}"
        fix = "sudo reboot" if "version mismatch" in driver.answer else _REINSTALL
        return Finding(_TOPIC, FAULT, text, fix)
    cards = driver.answer.splitlines()
    version = cards[0].split(",")[1].strip()
    text = f"{len(cards)} x {cards[0].split(',')[0].strip()}, driver {version}"
    if _numbers(version) < _OLDEST_DRIVER:
        oldest = ".".join(map(str, _OLDEST_DRIVER))
        return Finding(_TOPIC, FAULT, f"{text}; TensorFlow needs {oldest} or later", _INSTALL)
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        text = f"{text}, hidden by CUDA_VISIBLE_DEVICES={hidden!r}"
        return Finding(_TOPIC, WARNING, text, "unset CUDA_VISIBLE_DEVICES")
    if usable is None:
        return Finding(_TOPIC, OK, text)
    text = f"{text}; TensorFlow cannot use it: the CUDA libraries are missing"
    return Finding(
        _TOPIC, FAULT, text, f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
    )


def _numbers(version):
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
