"""Examines this machine part by part. Nothing here imports TensorFlow into this process."""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from albert_keras.machine.probe import Probe, run_probe
from albert_keras.report import bytes_text
from data_pipeline.tensorflow_line import (
    CUDA_FLAG,
    LINES,
    XLA_VARIABLE,
    Line,
    cuda_tools,
    required_line,
)

logger = logging.getLogger(__name__)

#: States of a finding. Only a fault keeps the program from working.
OK, WARNING, FAULT = "ok", "warning", "fault"
#: How each state is marked at the start of a line.
_MARKS = {OK: "✔", WARNING: "⚠", FAULT: "✘"}
_OURS = "albert-keras"
#: Their versions are always shown.
_SHOWN = (_OURS, "tensorflow", "keras", "tensorflow-text", "sentencepiece", "numpy", "protobuf")
#: Free space below which a folder is a fault: a few checkpoints of ALBERT-base take about 1 GB.
LEAST_DISK = 2e9
#: Available memory that a small model needs, and that ALBERT-base needs at its usual batch sizes.
_LEAST_MEMORY, _USUAL_MEMORY = 1e9, 4e9
#: Instruction sets that decide the speed, the oldest first.
_INSTRUCTIONS = ("avx", "avx2", "avx512f", "avx512_bf16", "amx_bf16")
#: The oldest driver for CUDA 12, which every supported TensorFlow is built with.
_OLDEST_DRIVER = (525, 60)
_INSTALL = "sudo apt-get install nvidia-driver-535 && sudo reboot"
_REINSTALL = "sudo apt-get install --reinstall nvidia-driver-535 && sudo reboot"
_QUERY = ("--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")


class Finding(NamedTuple):
    """One property of the machine."""

    topic: str  # one or two words, such as "disk"
    state: str  # OK, WARNING or FAULT
    text: str  # a sentence or a list of facts
    fix: str | None = None  # a command, or what to do; None if there is nothing to fix

    def lines(self) -> list[str]:
        """Returns the finding as text, the fix on a line of its own."""
        shown = [f"{_MARKS[self.state]} {self.topic:<11}  {self.text}"]
        return shown if self.fix is None else [*shown, f"{'':13}  fix: {self.fix}"]


def examine(
    out: Path = Path("runs"), least_disk: float = LEAST_DISK
) -> tuple[list[Finding], Probe]:
    """Examines packages, processor, memory, disk, GPUs and TensorFlow; takes about 20 seconds.

    Args:
        out: Folder that runs will be written to.
        least_disk: Free bytes that its disk needs.

    Returns:
        What was found, and what was measured.
    """
    findings = [python_finding(), *package_findings(), processor_finding()]
    findings += [memory_finding(read_memory()), disk_finding(out, least_disk)]
    logger.info("starting TensorFlow in another process")
    probe = run_probe()
    findings += keras_findings(probe.keras)
    causes = any(one.state == FAULT and one.topic != "disk" for one in findings)
    findings.append(gpu_finding(ask_driver(), probe.gpus, has_compiler=finds_compiler()))
    return [*findings, *tensorflow_findings(probe, causes)], probe


def tensorflow_findings(probe: Probe, is_explained: bool = False) -> list[Finding]:
    """Judges how TensorFlow started; `is_explained` says that other faults may be the reason."""
    found = []
    if probe.error is not None:
        repair = f"pip install --force-reinstall 'tensorflow=={required_line().tensorflow}'"
        fix = "correct the faults above first" if is_explained else repair
        found.append(Finding("TensorFlow", FAULT, f"does not work: {probe.error}", fix))
    else:
        text = f"imported in {probe.seconds:.1f} s; {probe.device}, precision {probe.precision}"
        found.append(Finding("TensorFlow", OK, text))
    if probe.peaks:
        rates = (f"{name} {rate / 1e12:.3g} TFLOP/s" for name, rate in probe.peaks.items())
        found.append(Finding("speed", OK, f"product of matrices: {', '.join(rates)}"))
    return found


def python_finding(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """Checks the version of Python."""
    text = f"{'.'.join(map(str, version))}, {sys.executable}"
    if any(version[:2] in line.pythons for line in LINES):
        return Finding("Python", OK, text)
    released = "; ".join(
        f"TensorFlow {line.series} is released for Python "
        + " and ".join(f"{major}.{minor}" for major, minor in line.pythons)
        for line in LINES
    )
    fix = "python3.11 -m venv .venv && .venv/bin/pip install ."
    return Finding("Python", FAULT, f"{text}; {released}", fix)


def package_findings(
    version: Callable[[str], str] = metadata.version,
    requires: Callable[[str], list[str] | None] = metadata.requires,
) -> list[Finding]:
    """Compares the installed packages with what this package and TensorFlow require.

    The arguments return the version and the requirements of a distribution, and raise
    PackageNotFoundError if it is not installed.
    """
    try:
        from packaging.requirements import Requirement
    except ImportError:
        fix = "pip install packaging"
        return [Finding("packages", FAULT, "`packaging`, which TensorFlow needs, is missing", fix)]

    faults: dict[str, Finding] = {}
    for owner in (_OURS, "tensorflow"):
        if _installed(owner, version) is None:
            continue
        for requirement in map(Requirement, requires(owner) or ()):
            name, needed = requirement.name, f"{requirement.name}{requirement.specifier}"
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            found = _installed(name, version)
            if found is None or not requirement.specifier.contains(found, prereleases=True):
                text = f"{name} {found or 'is not'} installed, and {needed} is required"
                fix = f"pip install '{needed}'"
                faults.setdefault(name, Finding("packages", FAULT, text, fix))
    shown = ((name, _installed(name, version)) for name in _SHOWN)
    listing = ", ".join(f"{name} {found}" for name, found in shown if found)
    findings = [*faults.values()] or [Finding("packages", OK, listing)]
    if _installed(_OURS, version) is None:
        text = "albert-keras is not installed as a package, so its requirements are not known"
        findings.append(Finding("packages", WARNING, text, "pip install ."))
    return findings


def keras_findings(
    loaded: str | None,
    environ: Mapping[str, str] = os.environ,
    line: Line | None = None,
) -> list[Finding]:
    """Checks which Keras is loaded; it must be that of the line, on TensorFlow.

    Args:
        loaded: Version of the Keras that was loaded; None if TensorFlow did not start.
        environ: The environment of the process.
        line: The required versions; None takes those for this Python.
    """
    line, found = line or required_line(), []
    if (backend := environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        text = f"KERAS_BACKEND={backend} must be tensorflow or not set"
        found.append(Finding("Keras", FAULT, text, "unset KERAS_BACKEND"))
    if loaded is not None and not f"{loaded}.".startswith(f"{line.keras}."):
        text = f"Keras {loaded} is loaded, and Keras {line.keras} is required"
        found.append(Finding("Keras", FAULT, text, f"pip install 'keras=={line.keras}.*'"))
    elif loaded is not None and not found:
        found.append(Finding("Keras", OK, f"Keras {loaded}"))
    return found


def _installed(name, version):
    """Returns the version of an installed distribution, or None; `version` finds it."""
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        return None


class Memory(NamedTuple):
    """Memory of the machine, or of the container that the program runs in."""

    total: int  # in bytes
    available: int  # in bytes


class Driver(NamedTuple):
    """The answer of `nvidia-smi`."""

    works: bool
    answer: str  # what it printed, without empty lines


def processor_finding(root: Path = Path("/")) -> Finding:
    """Checks the instruction sets, which Linux states below `root`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    text = f"{cores} core{'s' if cores != 1 else ''}"
    info = root / "proc" / "cpuinfo"
    content = info.read_text(errors="replace") if info.is_file() else ""
    flags = next((line for line in content.splitlines() if line.startswith("flags")), "").split()
    known = [flag for flag in _INSTRUCTIONS if flag in flags]
    if flags and "avx" not in known:
        text = f"{text} without AVX, which the packages of TensorFlow need"
        version = required_line().tensorflow
        fix = f"use another machine, or build TensorFlow {version} from source for this one"
        return Finding("processor", FAULT, text, fix)
    return Finding("processor", OK, f"{text}, {' '.join(known)}" if known else text)


def read_memory(root: Path = Path("/")) -> Memory | None:
    """Reads the memory from the files that Linux has below `root`; None if there are none."""
    try:
        lines = (root / "proc" / "meminfo").read_text().splitlines()
        values = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
        total, available = values["MemTotal"], values["MemAvailable"]
    except (OSError, ValueError, KeyError, IndexError):
        return None
    group = root / "sys" / "fs" / "cgroup"
    with contextlib.suppress(OSError, ValueError):  # ValueError: "max", no limit
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
        total, available = min(total, limit), min(available, max(limit - used, 0))
    return Memory(total, available)


def memory_finding(memory: Memory | None) -> Finding:
    """Judges the memory that is available now."""
    if memory is None:
        return Finding("memory", WARNING, "the amount of memory is not known on this system")
    text = f"{bytes_text(memory.available)} available of {bytes_text(memory.total)}"
    if memory.available >= _USUAL_MEMORY:
        return Finding("memory", OK, text)
    fix = "end other programs; albert-keras pretrain --dry-run measures what a run needs"
    if memory.available >= _LEAST_MEMORY:
        return Finding("memory", WARNING, f"{text}; only small models will fit", fix)
    text = f"{text}; a training needs at least {bytes_text(_LEAST_MEMORY)}"
    return Finding("memory", FAULT, text, fix)


def disk_finding(folder: Path, least: float = LEAST_DISK) -> Finding:
    """Checks the free space of the disk of an output folder, and whether it can be written to.

    Args:
        folder: It need not exist; the nearest existing parent is examined.
        least: Free bytes that are needed.
    """
    parent = folder.absolute()
    while not parent.is_dir():
        parent = parent.parent
    free = shutil.disk_usage(parent).free
    text = f"{bytes_text(free)} free in `{parent}`"
    if not os.access(parent, os.W_OK | os.X_OK):
        fix = f"sudo chown $USER '{parent}', or choose another folder"
        return Finding("disk", FAULT, f"`{parent}` cannot be written", fix)
    if free < least:
        fix = f"remove runs, see albert-keras runs list {folder}, or choose another folder"
        return Finding("disk", FAULT, f"{text}; {bytes_text(least)} are needed", fix)
    return Finding("disk", OK, text)


def ask_driver(program: str = "nvidia-smi", timeout: float = 20) -> Driver | None:
    """Asks the driver for its GPUs; None if the program is not installed."""
    try:
        done = subprocess.run([program, *_QUERY], capture_output=True, text=True, timeout=timeout)
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        return Driver(False, str(error))
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    works = done.returncode == 0 and bool(lines) and "," in lines[0]
    return Driver(works, "\n".join(lines) or f"exit code {done.returncode}")


def finds_compiler(installed: Path = Path("/usr/local/cuda")) -> bool:
    """Returns whether XLA finds what it needs to compile for a GPU.

    Args:
        installed: Where CUDA is installed, unless NVIDIA's packages contain it.
    """
    if cuda_tools() is not None or CUDA_FLAG in os.environ.get(XLA_VARIABLE, ""):
        return True
    return (installed / "nvvm" / "libdevice").is_dir()


def gpu_memory(driver: Driver | None) -> float | None:
    """Returns the bytes of the smallest GPU that the driver names, or None if there is none."""
    if driver is None or not driver.works:
        return None
    sizes = [line.rpartition(",")[2].split()[0] for line in driver.answer.splitlines()]
    return min(float(size) for size in sizes) * 2**20


def gpu_finding(
    driver: Driver | None,
    usable: int | None,
    environ: Mapping[str, str] = os.environ,
    has_compiler: bool = True,
) -> Finding:
    """Judges the GPUs of this machine.

    Args:
        driver: Answer of `ask_driver`.
        usable: Number of GPUs that TensorFlow can use; None if it does not start.
        environ: The environment of the process.
        has_compiler: Result of `finds_compiler`.
    """
    if usable:
        text = f"TensorFlow uses {usable} GPU{'s' if usable > 1 else ''}"
        if has_compiler:
            return Finding("GPU", OK, f"{text}; XLA finds `ptxas` and `libdevice`")
        text = f"{text}; XLA, which compiles training steps, finds no `ptxas` and `libdevice`"
        fix = f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
        return Finding("GPU", WARNING, text, fix)
    if driver is None:
        text = f"no NVIDIA driver: everything runs on the CPU (with a GPU: {_INSTALL})"
        return Finding("GPU", OK, text)
    if not driver.works:
        text = f"the NVIDIA driver is broken. nvidia-smi: {driver.answer.splitlines()[0]}"
        fix = "sudo reboot" if "version mismatch" in driver.answer else _REINSTALL
        return Finding("GPU", FAULT, text, fix)
    cards = driver.answer.splitlines()
    version = cards[0].split(",")[1].strip()
    text = f"{len(cards)} x {cards[0].split(',')[0].strip()}, driver {version}"
    if tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < _OLDEST_DRIVER:
        oldest = ".".join(map(str, _OLDEST_DRIVER))
        return Finding("GPU", FAULT, f"{text}; TensorFlow needs {oldest} or later", _INSTALL)
    hidden = environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None and hidden.strip() in ("", "-1"):
        text = f"{text}, hidden by CUDA_VISIBLE_DEVICES={hidden!r}"
        return Finding("GPU", WARNING, text, "unset CUDA_VISIBLE_DEVICES")
    if usable is None:
        return Finding("GPU", OK, text)
    text = f"{text}; TensorFlow cannot use it: the CUDA libraries are missing"
    fix = f"pip install 'tensorflow[and-cuda]=={required_line().tensorflow}'"
    return Finding("GPU", FAULT, text, fix)
