"""What all benchmarks share: the machine, fresh processes, and medians."""

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import platform
import statistics
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

from data_pipeline.child_processes import isolated_spawning, num_processors
from data_pipeline.errors import InputError

_CPU_INFO = Path("/proc/cpuinfo")


def machine() -> dict:
    """Returns what the numbers were measured on.

    `load` is the number of processes that waited for a processor over the last minute; call this
    before a benchmark starts.
    """
    return {
        "cpu": _cpu_model(),
        "cores": num_processors(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "tensorflow": version("tensorflow"),
    }


def machine_lines(machine: dict) -> Iterator[str]:
    """Yields the lines of what `machine` returns."""
    yield f"machine: {machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} before"
    yield (
        f"         {machine['system']}, Python {machine['python']}, NumPy {machine['numpy']}, "
        f"TensorFlow {machine['tensorflow']}"
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


def reason_of(error: Exception) -> str:
    """Returns in one line why a contestant could not be measured."""
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return text.strip().splitlines()[0][:200]


def summary(values: Iterable[float]) -> dict[str, float]:
    """Returns the `median`, `low` and `high`, the smallest and the largest."""
    values = list(values)
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def ratios(values, others):
    """Returns the `summary` of values divided by the others of the same round."""
    return summary(value / other for value, other in zip(values, others, strict=True))


def shown(summary: dict[str, float], form: str, scale: float = 1.0) -> str:
    """Returns a `summary` as "median [low..high]"; one value if all are equal."""
    values = (summary[name] * scale for name in ("median", "low", "high"))
    middle, lowest, highest = (format(value, form) for value in values)
    return middle if lowest == highest else f"{middle} [{lowest}..{highest}]"


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
