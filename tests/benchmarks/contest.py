"""A contest: each contestant in a process of its own, one running while the others wait."""

import concurrent.futures
import contextlib
import ctypes
import importlib.util
import logging
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from albert_keras.report import table
from albert_keras.training.process_memory import peak_mb
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from tests.benchmarks.measure import (
    NewProcess,
    in_new_process,
    machine_lines,
    ratios,
    reason_of,
    shown,
    summary,
)
from tests.benchmarks.peak import measure_peak

logger = logging.getLogger(__name__)

OURS = "ours"
NOT_INSTALLED = "not installed: pip install albert-keras[bench]"
#: Runs that do not count: after the very first one, and each time a contestant resumes.
_WARM_UP, _RESUME = 2, 1
#: Facts of contestants that the table shows, and how.
_FACTS = {"weights": ",", "first_loss": ".2f", "last_loss": ".2f"}


class Contestant(NamedTuple):
    """A program that is compared with others."""

    name: str  #: Such as "transformers, compiled"; `OURS` for ours.
    dtype: str  #: "float32" or "bfloat16", what it multiplies in.
    prepare: Callable  #: Returns a Prepared, in the contestant's process; a function of a module.
    arguments: tuple = ()  #: They are pickled.
    needs: tuple[str, ...] = ()  #: Packages; without them the contestant does not take part.

    @property
    def label(self) -> str:
        return f"{self.name}, {self.dtype}"


class Prepared(NamedTuple):
    """What a contestant measures."""

    run: Callable[[], object]  #: Runs one step and waits for its result.
    facts: dict  #: For JSON, read after all runs, so that `run` may change it.
    peak_mb: Callable[[], float] = peak_mb  #: Peak memory: of its process, or of its GPU.


class Work(NamedTuple):
    """What one run does, the same for all contestants."""

    about: str  #: For the line above the table.
    tokens: int
    flops: float  #: Useful operations.


def check_names(option: str, names: Iterable[str], known: Iterable[str]):
    """Raises InputError for a name that is not among the known ones."""
    for name in names:
        if name not in known:
            raise InputError(f"`{name}` is not a known {option}{did_you_mean(name, known)}")


def hold_contest(
    contestants: Sequence[Contestant],
    work: Work,
    peaks: dict,
    repeats: int,
    seconds: float,
    prepares_at_once: bool = False,
) -> dict:
    """Measures contestants of different labels in turn, for `seconds` in each of `repeats` rounds.

    Each has one process throughout, so that it compiles once; it waits while another one runs.
    Every second round runs backwards. The first run, two more, and one whenever a contestant
    resumes do not count.

    Args:
        work: What one run does.
        peaks: Operations per second of the fastest product of each dtype, see `measure_peaks`.
        prepares_at_once: Whether they are prepared at the same time, which is faster.

    Returns:
        dict for JSON: `about`; `useful_flops`; `contestants`, a list of dicts with `name`, `dtype`
        and either `failed`, the reason (str), or `rounds`, mean seconds of a run in each round;
        `start_seconds`, of preparing it and of the first run, which compiles; `peak_mb`, the peak
        memory of its process, on a GPU of its tensors there; `facts`; and the summaries over the
        rounds `seconds`, `tokens_per_second`, `flops` (useful ones per second), `share_of_peak`
        and `ratio`, its time divided by ours of the same dtype (above 1: we are faster), None for
        ours.
    """
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(NewProcess()) for _ in contestants]
        with concurrent.futures.ThreadPoolExecutor(len(processes)) as threads:
            prepare = threads.map if prepares_at_once else map
            workers = list(prepare(_Worker, contestants, processes))
        for repeat in range(repeats):
            for worker in reversed(workers) if repeat % 2 else workers:
                worker.measure(seconds)
        results = [worker.result() for worker in workers]
    ours = {
        one["dtype"]: one["rounds"]
        for one in results
        if one["name"] == OURS and "failed" not in one
    }
    for found in results:
        if "failed" not in found:
            found |= _rates(found["rounds"], work, peaks[found["dtype"]])
            reference = None if found["name"] == OURS else ours.get(found["dtype"])
            found["ratio"] = reference and ratios(found["rounds"], reference)
    return {"about": work.about, "useful_flops": work.flops, "contestants": results}


def measure_peaks(dtypes: Iterable[str], seconds: float = 1.5) -> dict[str, float]:
    """Measures the fastest product of square matrices of each dtype, operations per second."""
    return {dtype: in_new_process(measure_peak, dtype, seconds) for dtype in dict.fromkeys(dtypes)}


def contest_lines(result: dict) -> Iterator[str]:
    """Yields the lines of a benchmark's result: `machine`, `settings`, `peaks` and `contest`."""
    settings, contest = result["settings"], result["contest"]
    yield from machine_lines(result["machine"])
    yield f"median of {settings['repeats']} rounds [lowest..highest]"
    for dtype, flops in result["peaks"].items():
        yield f"fastest square product in {dtype}: {flops / 1e9:,.0f} GFLOP/s"
    yield ""
    yield f"{contest['about']}, {contest['useful_flops'] / 1e9:,.1f} useful GFLOP"
    measured = [found for found in contest["contestants"] if "failed" not in found]
    if measured:
        facts = [name for name in _FACTS if name in measured[0]["facts"]]
        header = ["", "dtype", "ms", "tokens/s", "GFLOP/s", "of peak", "peak MB"]
        header += ["ours: times faster", *(name.replace("_", " ") for name in facts)]
        yield from table(header, [_cells(found, facts) for found in measured], left=(0, 1))
    versions = {}
    for found in contest["contestants"]:
        if "failed" in found:
            yield f"  {found['name']}, {found['dtype']}: {found['failed']}"
        versions |= found.get("facts", {}).get("versions", {})
    yield ", ".join(" ".join(pair) for pair in versions.items())


def _cells(found, facts):
    return [
        found["name"],
        found["dtype"],
        shown(found["seconds"], ".1f", 1e3),
        f"{found['tokens_per_second']['median']:,.0f}",
        f"{found['flops']['median'] / 1e9:,.0f}",
        f"{found['share_of_peak']['median']:.0%}",
        f"{found['peak_mb']:,.0f}",
        shown(found["ratio"], ".2f") if found["ratio"] else "",
        *(format(found["facts"][name], _FACTS[name]) for name in facts),
    ]


def _rates(rounds, work, peak):
    return {
        "seconds": summary(rounds),
        "tokens_per_second": summary(work.tokens / seconds for seconds in rounds),
        "flops": summary(work.flops / seconds for seconds in rounds),
        "share_of_peak": summary(work.flops / seconds / peak for seconds in rounds),
    }


class _Worker:
    """A contestant in its process, seen from the process that holds the contest."""

    def __init__(self, contestant, process):
        self.contestant = contestant
        self.failed = None
        self._process = process
        self._rounds = []
        if any(importlib.util.find_spec(name) is None for name in contestant.needs):
            self.failed = NOT_INSTALLED
            return
        logger.info("preparing %s", contestant.label)
        self._start_seconds = self._call(_prepare, contestant.prepare, contestant.arguments)

    def measure(self, seconds):
        if self.failed is None:
            logger.info("measuring %s", self.contestant.label)
            self._rounds.append(self._call(_mean_seconds, seconds))

    def result(self) -> dict:
        """Returns what `hold_contest` reports of this contestant alone."""
        last = None if self.failed else self._call(_end)
        found = {"name": self.contestant.name, "dtype": self.contestant.dtype}
        if self.failed:
            return found | {"failed": self.failed}
        return found | last | {"rounds": self._rounds, "start_seconds": self._start_seconds}

    def _call(self, function, *arguments):
        try:
            return self._process.call(function, *arguments)
        except Exception as error:  # whatever a library raises: the others can be measured
            self.failed = reason_of(error)
            logger.warning("%s cannot be measured: %s", self.contestant.label, self.failed)


#: In the process of a contestant: what it measures.
_prepared: Prepared | None = None


def _prepare(prepare, arguments):
    """Prepares the contestant of this process; returns the seconds, the first run included."""
    global _prepared
    started = time.perf_counter()
    _prepared = prepare(*arguments)
    _prepared.run()
    seconds = time.perf_counter() - started
    for _ in range(_WARM_UP):
        _prepared.run()
    _release_memory()
    return seconds


def _mean_seconds(seconds):
    """Returns the mean seconds of a run: of one, or of more until the time is over."""
    for _ in range(_RESUME):
        _prepared.run()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        started = time.perf_counter()
        _prepared.run()
        times.append(time.perf_counter() - started)
    _release_memory()
    return statistics.fmean(times)


def _end():
    return {"peak_mb": _prepared.peak_mb(), "facts": _prepared.facts}


def _release_memory():
    # Waiting contestants would otherwise hold what they have freed, and together fill the machine.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
