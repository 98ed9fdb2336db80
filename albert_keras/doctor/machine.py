"""Checks the processor, the memory, and the disk of the output folder."""

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from albert_keras.report import bytes_text
from albert_keras.training.cost.memory import PROCESS_BYTES, TRACE_BYTES
from data_pipeline.files import is_disk_full
from data_pipeline.tensorflow_line import required_line

#: Free space below which a folder is a fault: a few checkpoints of ALBERT-base take about 1 GB.
LEAST_DISK = 2e9
#: Available memory that a small model needs, and that ALBERT-base needs at its usual batch sizes.
_LEAST_MEMORY, _USUAL_MEMORY = PROCESS_BYTES + TRACE_BYTES + 300e6, 4e9
#: Instruction sets that decide the speed, the oldest first.
_INSTRUCTIONS = ("avx", "avx2", "avx512f", "avx512_bf16", "amx_bf16")
#: Size of the file whose writing is measured.
_WRITTEN = 32 << 20


class Memory(NamedTuple):
    """Memory of the machine, or of the container that the program runs in."""

    total: int  # in bytes
    available: int  # in bytes


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
        fix = (
            "use another machine, or build TensorFlow "
            f"{required_line().tensorflow} from source for this one"
        )
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
    size = f"{memory.available / 1e6:.0f}MB"
    fix = f"end other programs; albert-keras plan --table --memory {size} shows what fits"
    if memory.available >= _LEAST_MEMORY:
        return Finding("memory", WARNING, f"{text}; only small models will fit", fix)
    text = f"{text}; a training needs at least {bytes_text(_LEAST_MEMORY)}"
    return Finding("memory", FAULT, text, fix)


def disk_finding(folder: Path, least: float = LEAST_DISK) -> Finding:
    """Checks the free space of the disk of an output folder, and how fast files are written there.

    Args:
        folder: It need not exist; the nearest existing parent is examined.
        least: Free bytes that are needed.
    """
    parent = folder.absolute()
    while not parent.is_dir():
        parent = parent.parent
    another = "choose another --out"
    try:
        statistics = os.statvfs(parent)
        free = statistics.f_bavail * statistics.f_frsize
        if free < max(least, _WRITTEN):
            text = f"{bytes_text(free)} free in `{parent}`; {bytes_text(least)} are needed"
            runs = f"albert-keras runs list {folder} and albert-keras runs remove RUN"
            return Finding("disk", FAULT, text, f"free some space with {runs}, or {another}")
        speed = _writing_speed(parent)
    except OSError as error:
        text = f"`{parent}` cannot be written: {error.strerror}"
        fix = "remove files" if is_disk_full(error) else f"sudo chown $USER '{parent}'"
        return Finding("disk", FAULT, text, f"{fix}, or {another}")
    text = f"{bytes_text(free)} free in `{parent}`, written at {bytes_text(speed)}/s"
    return Finding("disk", OK, text)


def _writing_speed(folder):
    """Returns the bytes per second at which a file is written and flushed."""
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        for _ in range(_WRITTEN // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return _WRITTEN / (time.perf_counter() - started)
