"""Where training runs: a `tf.distribute` strategy for a word of the user or for the machine.

Call `build_strategy` first of all: TPUs and several workers cannot be set up once TensorFlow has
run an operation. Models and optimizers are then made inside `strategy.scope()`.
"""

import faulthandler
import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path

import tensorflow as tf

from albert_keras.training.distributed.cluster import noticing_lost_workers, read_workers
from albert_keras.training.distributed.rendezvous import meet
from albert_keras.training.loop.loop_config import STRATEGIES
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

LIBTPU_PLACES = (Path("/lib/libtpu.so"), Path("/usr/lib/libtpu.so"))

#: What Linux calls a processor's instructions for bfloat16.
_BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")

#: For workers that have met to start TensorFlow's servers; it takes about one.
_SECONDS_TO_JOIN = 180


def build_strategy(name="auto"):
    """Returns the strategy to train under.

    Args:
        name: str.
            "auto": TPU if there is one, all GPUs if there are several, else one device.
            "tpu": the TPU of this machine, or the one that TPU_NAME names.
            "mirrored": all GPUs of this machine, or else all its logical CPU devices.
            "multiworker": one process per machine, described by TF_CONFIG.
            "single": the first GPU, or else the CPU.

    Returns:
        tf.distribute.Strategy.

    Raises:
        InputError: If the name is unknown, there is no TPU or it does not start, TF_CONFIG is
            absent or unusable, or a worker does not come.
        WorkerLost: If one went away while they were joining.
    """
    if name not in STRATEGIES:
        raise InputError(f"`strategy` {name!r} is unknown{did_you_mean(name, STRATEGIES)}")
    tpu = find_tpu() if name in ("auto", "tpu") else None
    if name == "auto":
        gpus = 0 if tpu else len(tf.config.list_physical_devices("GPU"))
        name = choose_strategy(tpu, gpus)
    builders = {
        "tpu": lambda: _tpu_strategy(tpu),
        "mirrored": _mirrored_strategy,
        "multiworker": _multiworker_strategy,
        # The default strategy and not OneDeviceStrategy: it has the same methods, and `fit` then
        # takes its plain path, without a layer of distributed data. A step of a tiny model took
        # 0.3 ms instead of 0.7 (CPU, 16 steps per execution), and the data set's own iterator can
        # be put into a checkpoint.
        "single": tf.distribute.get_strategy,
    }
    return builders[name]()


def choose_strategy(tpu, num_gpus):
    """Returns what "auto" means on a machine (str).

    Args:
        tpu: str. What `find_tpu` found, or None.
        num_gpus: int.
    """
    if tpu:
        return "tpu"
    return "mirrored" if num_gpus > 1 else "single"


def find_tpu(environ=os.environ, devices=Path("/dev"), libraries=LIBTPU_PLACES):
    """Finds a TPU by looking at this machine only; asks no metadata server, which may hang.

    Args:
        environ: mapping. Environment variables.
        devices: pathlib.Path. Folder of device files.
        libraries: sequence of pathlib.Path. Where libtpu may be, besides the Python package and
            the path in TPU_LIBRARY_PATH.

    Returns:
        str. The value of TPU_NAME if set, "local" for the chips of a TPU VM, or None.
    """
    if environ.get("TPU_NAME"):
        return environ["TPU_NAME"]
    chips = [*devices.glob("accel[0-9]*"), *devices.glob("vfio/[0-9]*")]
    # Other accelerators and virtual machines have such device files as well; libtpu decides.
    libtpu = (
        environ.get("TPU_LIBRARY_PATH")
        or any(place.exists() for place in libraries)
        or importlib.util.find_spec("libtpu")
    )
    return "local" if chips and libtpu else None


def _tpu_strategy(tpu):
    if tpu is None:
        raise InputError(
            "`strategy` tpu needs a TPU. Found: no TPU_NAME, and no TPU chip with libtpu on this "
            "machine. Run on a TPU VM, set TPU_NAME, or choose another strategy."
        )
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        tf.config.experimental_connect_to_cluster(resolver)  # does nothing for "local"
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ImportError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"TPU `{tpu}` could not be started: {error} A TPU VM needs TensorFlow's TPU build "
            "and a chip that no other process holds."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _mirrored_strategy():
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def _multiworker_strategy():
    workers = read_workers(os.environ.get("TF_CONFIG"))
    meet(workers)
    # From here on nothing in Python runs until the others have joined. Should one have died in the
    # moment since they met, then only this is left to end the wait.
    faulthandler.dump_traceback_later(_SECONDS_TO_JOIN, exit=True, file=sys.__stderr__)
    try:
        with noticing_lost_workers(len(workers.addresses) > 1):
            strategy = tf.distribute.MultiWorkerMirroredStrategy()
    finally:
        faulthandler.cancel_dump_traceback_later()
    if threading.current_thread() is threading.main_thread():
        # TensorFlow has put a handler of its own in its place, which only writes a line.
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    return strategy


def choose_precision(strategy, cpu_info=Path("/proc/cpuinfo")):
    """Tells what "auto" means for the devices of a strategy.

    Args:
        strategy: tf.distribute.Strategy.
        cpu_info: Path. Where Linux describes the processor.

    Returns:
        str. "mixed_bfloat16" on a TPU, and on a CPU that multiplies it faster (with AVX-512 twice
        as fast, with AMX several times); "float32" elsewhere.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return "mixed_bfloat16"
    if tf.config.list_logical_devices("GPU") or not cpu_info.is_file():
        return "float32"
    flags = cpu_info.read_text(errors="replace")
    is_faster = any(flag in flags for flag in _BFLOAT16_FLAGS)
    return "mixed_bfloat16" if is_faster else "float32"
