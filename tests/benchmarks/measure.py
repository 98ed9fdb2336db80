"""What all benchmarks share: the machine, and fresh processes."""

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import platform
import threading
import warnings
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

from data_pipeline.child_processes import isolated_spawning, num_processors
from data_pipeline.errors import InputError

_CPU_INFO = Path("/proc/cpuinfo")


def machine_line() -> str:
    """Returns what the numbers are measured on; call it before a benchmark starts.

    `load` is the number of processes that waited for a processor over the last minute.
    """
    return (
        f"machine: {_cpu_model()}, {num_processors()} cores, load {os.getloadavg()[0]:.1f} before, "
        f"TensorFlow {version('tensorflow')}"
    )


class NewProcess:
    """A process that has loaded nothing yet, for functions of modules; use it in `with`.

    Arguments and results are pickled. The process ends with this one, and is the first to end when
    memory runs out.
    """

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self._pool = concurrent.futures.ProcessPoolExecutor(1, context, _begin)
        return self

    def __exit__(self, *error):
        self._pool.shutdown()

    def call(self, function: Callable, *arguments) -> Any:
        """Returns the result of a function; raises what it raises.

        InputError if the process was killed.
        """
        try:
            with isolated_spawning():
                future = self._pool.submit(function, *arguments)
            return future.result()
        except BrokenProcessPool:
            raise InputError("Its process was killed, or ran out of memory.") from None


def in_new_process(function: Callable, *arguments) -> Any:
    """Returns the result of a function that is called in a process of its own, see `NewProcess`."""
    with NewProcess() as process:
        return process.call(function, *arguments)


def _begin():
    """Runs first in a new process."""
    os.dup2(2, 1)  # what libraries print is not the result of a command
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    def end_with_parent():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):  # not on this system, or not allowed
        Path("/proc/self/oom_score_adj").write_text("1000")


def _cpu_model():
    for line in _CPU_INFO.read_text().splitlines() if _CPU_INFO.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
