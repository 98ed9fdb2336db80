"""Devices by their data sheets, the measured peak of this machine, and sizes as people write them.

The fraction of the peak that a step reaches is an assumption, except on a CPU.
"""

import re
from decimal import ROUND_CEILING, Context
from typing import NamedTuple

from albert_keras.machine.step_memory import PROCESS_BYTES, TRACE_BYTES
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

_GIB = 1024**3
_EXPONENTS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)(i?)b", re.IGNORECASE)


class Device(NamedTuple):
    """A kind of machine."""

    kind: str  # "cpu", "gpu" or "tpu"
    replicas: int  # number of cores, chips or cards; each gets a part of the batch
    tflops: float  # peak of a replica in its usual precision, in 10^12 operations per second
    memory_bytes: float  # memory of a replica
    precision: str  # the usual one
    mfu: float  # fraction of the peak that useful work is assumed to reach
    process_bytes: float  # memory in use before a step starts


def _gpu(tflops, gigabytes, precision):
    return Device("gpu", 1, tflops, gigabytes * 1e9, precision, 0.3, PROCESS_BYTES + TRACE_BYTES)


def _tpu(replicas, tflops, gibibytes):
    memory = gibibytes * _GIB
    return Device("tpu", replicas, tflops, memory, "mixed_bfloat16", 0.35, 0.5 * _GIB)


#: Source of the peaks: NVIDIA's data sheets (dense products, tensor cores) and Google Cloud's pages
#: on each TPU version, per replica: a core of v2 and v3, a chip of the others. The CPU has eight
#: cores of 80 GFLOP/s; this machine's is measured. It reaches 45 % of its measured peak with 6x256
#: in mixed_bfloat16 on two hyperthreads of a Zen 4 core.
DEVICES = {
    "cpu": Device("cpu", 1, 0.64, 16e9, "float32", 0.45, PROCESS_BYTES + TRACE_BYTES),
    "t4": _gpu(65, 16, "mixed_float16"),
    "v100": _gpu(125, 16, "mixed_float16"),
    "a100": _gpu(312, 40, "mixed_bfloat16"),
    "h100": _gpu(989, 80, "mixed_bfloat16"),
    "tpu-v2-8": _tpu(8, 22.5, 8),
    "tpu-v3-8": _tpu(8, 61.5, 16),
    "tpu-v4-8": _tpu(4, 275, 32),
    "tpu-v5e-8": _tpu(8, 197, 16),
    "tpu-v5p-8": _tpu(4, 459, 95),
    "tpu-v6e-8": _tpu(8, 918, 32),
}


def find_device(name: str) -> Device:
    """Returns a device; raises InputError if the name is unknown."""
    if name not in DEVICES:
        raise InputError(f"`{name}` is not a known device{did_you_mean(name, DEVICES)}")
    return DEVICES[name]


def measured_tflops(precision: str) -> float:
    """Measures the peak of this CPU in a precision for two seconds, in TFLOP/s.

    "auto" is the precision that this machine would choose.
    """
    from albert_keras.training import peak
    from albert_keras.training.strategy import choose_precision

    precision = choose_precision(None) if precision == "auto" else precision
    return peak.measure_peak(precision, seconds=2, on_cpu=True) / 1e12


def parse_bytes(text: str, name: str = "a size") -> float:
    """Reads a size in bytes; raises InputError if it is not one, or not positive.

    "12GB" and "500MB" are powers of 1000, "12GiB" of 1024. The error shows the name of the value.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise InputError(
            f"`{name}` must be a size with its unit, such as 12GB, 12GiB or 500MB. "
            f"Received: {text!r}."
        )
    number, unit, is_binary = found.groups()
    return float(number) * (1024 if is_binary else 1000) ** _EXPONENTS[unit.lower()]


def rounded_up(number: float) -> float:
    """Rounds a minimum up to three significant digits, so that the value that is shown suffices."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(str(number)))
