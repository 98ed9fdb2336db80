"""Examines this machine: versions, memory, devices and precision."""

import contextlib
import json
import logging
import os
import platform
import signal
import subprocess
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from albert_keras.report import bytes_text
from data_pipeline.child_processes import code_command
from data_pipeline.tensorflow_line import (
    CUDA_FLAG,
    XLA_VARIABLE,
    Line,
    cuda_tools,
    required_line,
)

logger = logging.getLogger(__name__)

#: States of a finding. Only a fault keeps the program from working.
OK, WARNING, FAULT = "ok", "warning", "fault"
_MARKS = {OK: "✔", WARNING: "⚠", FAULT: "✘"}
#: Their versions are shown.
_SHOWN = ("albert-keras", "tensorflow", "keras", "tensorflow-text", "sentencepiece", "numpy")
#: Available memory that a small model needs.
_LEAST_MEMORY = 1e9
#: Available memory that ALBERT-base needs at its usual batch sizes.
_USUAL_MEMORY = 4e9
#: Where XLA finds CUDA unless NVIDIA's packages contain it.
_CUDA = Path("/usr/local/cuda/nvvm/libdevice")
#: Runs in a process of its own, because TensorFlow may end it. Every command imports one of these.
_PROBE = """
import json
import tensorflow as tf
import albert_keras.training.pretrain, albert_keras.tasks.finetune, albert_keras.serving.predictor
from albert_keras.training.strategy import build_strategy, choose_precision, describe_devices
strategy = build_strategy()
found = {
    "devices": describe_devices(strategy),
    "num_gpus": len(tf.config.list_physical_devices("GPU")),
    "precision": choose_precision(strategy),
}
print(json.dumps(found))
"""


class Finding(NamedTuple):
    """One property of the machine."""

    topic: str  # one or two words, such as "memory"
    state: str  # OK, WARNING or FAULT
    text: str  # a sentence or a list of facts
    fix: str | None = None  # a command, or what to do; None if there is nothing to fix

    def lines(self) -> list[str]:
        """Returns the finding as text, the fix on a line of its own."""
        shown = [f"{_MARKS[self.state]} {self.topic:<11}  {self.text}"]
        return shown if self.fix is None else [*shown, f"{'':13}  fix: {self.fix}"]


def examine() -> list[Finding]:
    """Examines versions, memory, TensorFlow and GPUs; takes about 20 seconds."""
    findings = [package_finding(), memory_finding()]
    logger.info("starting TensorFlow in another process")
    found, error = start_tensorflow()
    if error is not None:
        fix = "pip check names packages that are missing or have another version than is required"
        return [*findings, Finding("TensorFlow", FAULT, f"does not work: {error}", fix)]
    text = f"{found['devices']}, precision {found['precision']}"
    return [*findings, Finding("TensorFlow", OK, text), gpu_finding(found["num_gpus"])]


def package_finding(version=metadata.version, line: Line | None = None) -> Finding:
    """Shows the versions of Python and packages; TensorFlow and Keras must be of the line.

    Args:
        version: Function that returns the version of a distribution, or raises
            PackageNotFoundError.
        line: The required versions; None takes those for this Python.
    """
    line, versions = line or required_line(), {"Python": platform.python_version()}
    for name in _SHOWN:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = version(name)
    text = ", ".join(f"{name} {found}" for name, found in versions.items())
    for name, series in (("tensorflow", line.series), ("keras", line.keras)):
        if not f"{versions.get(name)}.".startswith(f"{series}."):
            text = f"{name} {series} is required. Installed: {text}"
            return Finding("packages", FAULT, text, f"pip install '{name}=={series}.*'")
    return Finding("packages", OK, text)


def memory_finding(root: Path = Path("/")) -> Finding:
    """Judges the memory that is available now, of the container that the program runs in.

    Args:
        root: Folder that has the files in which Linux states it.
    """
    try:
        lines = (root / "proc" / "meminfo").read_text().splitlines()
    except OSError:
        return Finding("memory", WARNING, "the amount of memory is not known on this system")
    values = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    total, available = values["MemTotal"], values["MemAvailable"]
    group = root / "sys" / "fs" / "cgroup"
    with contextlib.suppress(OSError, ValueError):  # ValueError: "max", no limit
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        total, available = min(total, limit), min(available, max(limit - used, 0))
    text = f"{bytes_text(available)} available of {bytes_text(total)}"
    if available >= _USUAL_MEMORY:
        return Finding("memory", OK, text)
    fix = "end other programs; albert-keras pretrain --dry-run measures what a run needs"
    if available >= _LEAST_MEMORY:
        return Finding("memory", WARNING, f"{text}; only small models will fit", fix)
    text = f"{text}; a training needs at least {bytes_text(_LEAST_MEMORY)}"
    return Finding("memory", FAULT, text, fix)


def start_tensorflow(code: str = _PROBE, timeout: float = 300) -> tuple[dict, str | None]:
    """Starts TensorFlow in a process of its own, which may fail in any way.

    Args:
        code: What the process runs.
        timeout: Seconds after which it is ended.

    Returns:
        `devices`, `num_gpus` and `precision`, and None; or an empty dict and why it failed.
    """
    try:
        done = subprocess.run(code_command(code), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {}, f"no result within {timeout:g} s"
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]), None
    if done.returncode == -signal.SIGILL:
        return {}, "the processor lacks instructions that TensorFlow uses"
    last = done.stderr.strip().rpartition("\n")[2]
    return {}, last or f"exit code {done.returncode}"


def gpu_finding(num_gpus: int, program: str = "nvidia-smi") -> Finding:
    """Judges the GPUs of this machine.

    Args:
        num_gpus: Number of GPUs that TensorFlow can use.
        program: Asks the NVIDIA driver for its GPUs.
    """
    libraries = f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
    if num_gpus:
        text = f"TensorFlow uses {num_gpus} GPU{'s' if num_gpus > 1 else ''}"
        flags = os.environ.get(XLA_VARIABLE, "")
        if cuda_tools() is not None or CUDA_FLAG in flags or _CUDA.is_dir():
            return Finding("GPU", OK, f"{text}; XLA finds `ptxas` and `libdevice`")
        text = f"{text}; XLA, which compiles training steps, finds no `ptxas` and `libdevice`"
        return Finding("GPU", WARNING, text, libraries)
    try:
        done = subprocess.run([program, "--list-gpus"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return Finding("GPU", OK, "no NVIDIA driver that answers: everything runs on the CPU")
    answer = (done.stdout + done.stderr).strip().replace("\n", "; ")
    if done.returncode != 0:
        text = f"the NVIDIA driver does not work. nvidia-smi: {answer}"
        return Finding("GPU", FAULT, text, "restart the machine, or install the driver again")
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        text = f"{answer}, hidden by CUDA_VISIBLE_DEVICES"
        return Finding("GPU", WARNING, text, "unset CUDA_VISIBLE_DEVICES")
    text = f"{answer}; TensorFlow cannot use it: CUDA libraries, or a driver 525.60 or later, lack"
    return Finding("GPU", FAULT, text, libraries)
