"""Where training runs: the `tf.distribute` strategy by name, or the best one for the machine.

Call `build_strategy` first: TPUs and several workers cannot be set up once TensorFlow has run an
operation. Then create models and optimizers inside `strategy.scope()`.
"""

import faulthandler
import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from albert_keras.training.cluster import noticing_lost_workers, num_workers, read_workers
from albert_keras.training.loop_config import STRATEGIES
from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import did_you_mean

logger = logging.getLogger(__name__)

#: Folder with the device files of NVIDIA GPUs, such as `nvidia0`.
NVIDIA_DEVICES = Path("/dev")
LIBTPU_PATHS = (Path("/lib/libtpu.so"), Path("/usr/lib/libtpu.so"))

#: Ampere, the first GPUs with units for bfloat16.
_BFLOAT16_CAPABILITY = (8, 0)

#: Minutes in which all workers must join. TensorFlow waits up to an hour, ignoring SIGTERM.
_MINUTES_TO_JOIN = 10


def build_strategy(name: str = "auto", is_training: bool = False) -> tf.distribute.Strategy:
    """Returns the strategy to train under.

    Args:
        name:
            "auto": TPU if there is one, all GPUs if there are several, else one device.
            "tpu": the TPU of this machine.
            "mirrored": all GPUs of this machine, or else all its logical CPU devices.
            "multiworker": one process per machine, described by TF_CONFIG.
            "single": the first GPU, or else the CPU.
        is_training: Whether "auto" is "multiworker" if TF_CONFIG names several workers.

    Raises:
        InputError: If the name is unknown, there is no TPU or it does not start, or TF_CONFIG is
            missing or unusable.
        WorkerLost: If a worker was lost while they were joining. If one does not join within ten
            minutes, the process ends with status 1.
    """
    if name not in STRATEGIES:
        raise InputError(f"`strategy` {name!r} is unknown{did_you_mean(name, STRATEGIES)}")
    if is_training and name == "auto" and (config := os.environ.get("TF_CONFIG")):
        name = "multiworker" if len(read_workers(config).addresses) > 1 else name
    if name == "auto":
        is_on_tpu = has_tpu()
        gpus = 0 if is_on_tpu else len(tf.config.list_physical_devices("GPU"))
        name = "tpu" if is_on_tpu else "mirrored" if gpus > 1 else "single"
    builders = {
        "tpu": _tpu_strategy,
        "mirrored": _mirrored_strategy,
        "multiworker": _multiworker_strategy,
        # The default strategy rather than OneDeviceStrategy: it has the same methods, and `fit`
        # needs no layer of distributed data. A step of a tiny model took 0.3 ms instead of 0.7
        # (CPU, 16 steps per execution).
        "single": tf.distribute.get_strategy,
    }
    return builders[name]()


def has_tpu(devices: Path = Path("/dev"), libraries: Sequence[Path] = LIBTPU_PATHS) -> bool:
    """Returns whether this machine has a TPU, without a metadata server, which may not answer.

    Args:
        devices: The folder of device files.
        libraries: Locations of libtpu besides the Python package and TPU_LIBRARY_PATH.
    """
    chips = [*devices.glob("accel[0-9]*"), *devices.glob("vfio/[0-9]*")]
    # Other accelerators and virtual machines have such device files, too; libtpu decides.
    libtpu = (
        os.environ.get("TPU_LIBRARY_PATH")
        or any(path.exists() for path in libraries)
        or importlib.util.find_spec("libtpu")
    )
    return bool(chips and libtpu)


def describe_devices(strategy: tf.distribute.Strategy | None = None) -> str:
    """Returns what a strategy computes on, such as "CPU with 8 cores" or "2 GPUs (NVIDIA A100)".

    Without a strategy it is the device that TensorFlow chooses for single models. Warns if this
    machine has an NVIDIA GPU that TensorFlow cannot use.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return f"TPU with {strategy.num_replicas_in_sync} cores"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        gpus = gpus if strategy is None or strategy.num_replicas_in_sync > 1 else gpus[:1]
        names = {
            tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)
            for gpu in gpus
        }
        devices = f"{len(gpus)} GPUs" if len(gpus) > 1 else "GPU"
        device = f"{devices} ({', '.join(sorted(names))})"
    else:
        if any(NVIDIA_DEVICES.glob("nvidia[0-9]*")):
            logger.warning(
                "TensorFlow cannot use the NVIDIA GPU of this machine: `albert-keras doctor` says "
                "what to install."
            )
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        device = f"CPU with {cores} core{'s' if cores != 1 else ''}"
    replicas = 1 if strategy is None else strategy.num_replicas_in_sync
    workers = 1 if strategy is None else num_workers(strategy)
    if workers > 1:
        return f"{workers} workers, this one with {device}"
    return f"{device}, {replicas} replicas" if replicas > max(len(gpus), 1) else device


def _tpu_strategy():
    if not has_tpu():
        raise InputError(
            "The strategy tpu needs a TPU. This machine has no TPU chip with libtpu. Run on a TPU "
            "VM, or choose another strategy.",
            Mistake.NO_TPU,
        )
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"The TPU could not be started: {error} A TPU VM needs TensorFlow's TPU build "
            "and a chip that no other process uses."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _mirrored_strategy():
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multiworker_strategy():
    workers = read_workers(os.environ.get("TF_CONFIG"))
    count = len(workers.addresses)
    if count > 1:
        logger.info(
            "waiting for all %d workers of `TF_CONFIG`, at most %d minutes", count, _MINUTES_TO_JOIN
        )
    # No Python code runs until the others have joined: only this ends the wait.
    faulthandler.dump_traceback_later(60 * _MINUTES_TO_JOIN, exit=True, file=sys.__stderr__)
    try:
        with noticing_lost_workers(count > 1):
            strategy = tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        faulthandler.cancel_dump_traceback_later()
    if threading.current_thread() is threading.main_thread():
        # TensorFlow has replaced the handler by its own, which only writes a line.
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    return strategy


def is_tpu(strategy) -> bool:
    """Returns whether the devices of a strategy are those of a TPU."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def choose_precision(strategy, cpu_info=Path("/proc/cpuinfo")):
    """Returns the precision that "auto" means for the devices of a strategy (str).

    It is "mixed_bfloat16" on a TPU; on GPUs of compute capability 8.0 and later, which have units
    for it; and on a CPU that multiplies bfloat16 faster (with AVX-512 twice as fast, with AMX
    several times), which Linux states in `cpu_info`; elsewhere "float32".
    """
    if is_tpu(strategy):
        return "mixed_bfloat16"
    if gpus := tf.config.list_physical_devices("GPU"):
        details = map(tf.config.experimental.get_device_details, gpus)
        oldest = min(each.get("compute_capability", (0, 0)) for each in details)
        return "mixed_bfloat16" if oldest >= _BFLOAT16_CAPABILITY else "float32"
    if not cpu_info.is_file():
        return "float32"
    flags = cpu_info.read_text(errors="replace")
    is_faster = any(flag in flags for flag in ("avx512_bf16", "amx_bf16"))
    return "mixed_bfloat16" if is_faster else "float32"
