"""Devices by their data sheets; the fraction of the peak that a step reaches is an assumption."""

from typing import NamedTuple

from albert_keras.training.cost.memory import PROCESS_BYTES, TRACE_BYTES
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

_GIB = 1024**3


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
#: cores of 80 GFLOP/s; `--measure` measures yours.
DEVICES = {
    "cpu": Device("cpu", 1, 0.64, 16e9, "float32", 0.5, PROCESS_BYTES + TRACE_BYTES),
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


def measured_tflops(precision: str, on_cpu: bool) -> float:
    """Measures the peak of this machine in a precision for two seconds, in TFLOP/s.

    Args:
        precision: Precision of the run.
        on_cpu: Whether the CPU is measured even if this machine has a GPU or a TPU.

    Raises:
        InputError: If the peak of a TPU would have to be measured.
    """
    from albert_keras.training.cost.peak import measure_peak

    rate = measure_peak(precision, seconds=2, on_cpu=on_cpu)
    if rate is None:
        raise InputError("`--measure` does not support TPUs. Give --tflops instead.")
    return rate / 1e12


def find_device(name: str) -> Device:
    """Returns a device; raises InputError if the name is unknown."""
    if name not in DEVICES:
        raise InputError(f"`{name}` is not a known device{did_you_mean(name, DEVICES)}")
    return DEVICES[name]
