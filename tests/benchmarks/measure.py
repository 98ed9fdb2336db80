"""What all benchmarks share: the machine, fresh processes, runs in turn, and medians."""

import concurrent.futures
import itertools
import logging
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

from albert_keras.report import spread
from albert_keras.training.process_memory import (
    max_resident_mb as max_resident_mb,
    peak_mb as peak_mb,
)
from data_pipeline.building.workers import num_processors
from data_pipeline.child_processes import isolated_spawning
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

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


def in_new_process(function: Callable, *arguments) -> tuple:
    """Calls a function of a module in a process that has loaded nothing else.

    Returns the result, and the seconds from starting the process until it has ended. Arguments and
    result are pickled. What the function raises is raised here as well, and InputError if the
    process was killed.
    """
    started = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    try:
        with isolated_spawning(), concurrent.futures.ProcessPoolExecutor(1, context) as pool:
            result = pool.submit(function, *arguments).result()
    except BrokenProcessPool:
        raise InputError(
            "A measured process ended before its work was done: out of memory, or killed."
        ) from None
    return result, time.perf_counter() - started


def in_turn(actions: dict[Any, Callable], repeats: int) -> dict[Any, list]:
    """Runs several actions one after the other, repeatedly; returns the results, round by round.

    What slows the machine down for a while then affects all of them. Every second round runs
    backwards, so that none is always the first. The names of the actions are for the log.
    """
    results = {name: [] for name in actions}
    numbers = itertools.count(1)
    for repeat in range(repeats):
        for name in reversed(actions) if repeat % 2 else actions:
            logger.info("run %d of %d: %s", next(numbers), repeats * len(actions), name)
            results[name].append(actions[name]())
    return results


def summary(values: Iterable[float]) -> dict[str, float]:
    """Returns the `median`, `low` and `high`, the smallest and the largest."""
    values = list(values)
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def ratios(values, others):
    """Returns the `summary` of values divided by the others of the same round."""
    return summary(value / other for value, other in zip(values, others, strict=True))


def shown(summary: dict[str, float], form: str, scale: float = 1.0) -> str:
    """Returns a `summary` as "median [low..high]"."""
    return spread(*(summary[name] * scale for name in ("median", "low", "high")), form)


def _cpu_model():
    for line in _CPU_INFO.read_text().splitlines() if _CPU_INFO.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
