"""A contest: each contestant in a process of its own, one running while the others wait."""

import contextlib
import ctypes
import importlib.util
import logging
import multiprocessing
import os
import signal
import statistics
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from albert_keras.training.peak import measure_peak
from data_pipeline.child_processes import isolated_spawning
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from tests.benchmarks.measure import in_new_process, in_turn, peak_mb, ratios, summary

logger = logging.getLogger(__name__)

#: Runs that do not count: after the very first one, and each time a contestant resumes.
_WARM_UP, _RESUME = 2, 1
#: How long a contestant may be silent, in seconds, in addition to the time it measures.
_PATIENCE = 900
NOT_INSTALLED = "not installed: pip install albert-keras[bench]"
_EXIT_SECONDS = 5
_MAX_REASON_LENGTH = 200


class Contestant(NamedTuple):
    """A program that is compared with others."""

    name: str  #: Such as "transformers, compiled".
    dtype: str  #: "float32", "bfloat16" or another: what it multiplies in.
    prepare: Callable  #: Returns a Prepared, in the contestant's process; a function of a module.
    arguments: tuple = ()  #: They are pickled.
    needs: tuple[str, ...] = ()  #: Packages; without them the contestant does not take part.

    @property
    def label(self) -> str:
        return f"{self.name}, {self.dtype}"


class Prepared(NamedTuple):
    """What a contestant measures."""

    run: Callable[[], object]  #: Runs one step or request and waits for its result.
    facts: dict  #: For JSON, read after all runs, so that `run` may change it.


def chosen_peers(names: Iterable[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the selected peers: names, or "all" or "none" alone; InputError for others."""
    names = tuple(dict.fromkeys(names))
    if names in (("all",), ("none",), ()):
        return known if names == ("all",) else ()
    for name in names:
        if name in ("all", "none"):
            raise InputError(f"`{name}` must be the only peer. Received: {', '.join(names)}.")
        if name not in known:
            raise InputError(f"`{name}` is not a known peer{did_you_mean(name, known)}")
    return names


def hold_contest(contestants: Sequence[Contestant], repeats: int, seconds: float) -> dict:
    """Measures contestants of different labels in turn, for `seconds` in each of `repeats` rounds.

    Each has one process throughout, so that it compiles once; it waits while another one runs.
    Every second round runs backwards. The first run, two more, and one whenever a contestant
    resumes do not count. No process outlives this one.

    Returns:
        dict of label to dict for JSON, each with `name` and `dtype`, and either `failed`, the
        reason (str), or
        `rounds`, mean seconds of a run in each round; `seconds`, the `summary` of them; `times`,
        seconds of all single runs; `start_seconds`, of preparing it and of the first run, which
        compiles; `peak_mb`, the peak memory of its process; `step_mb`, how much of that was added
        after it was prepared; `facts`.
    """
    with contextlib.ExitStack() as stack:
        workers = {one.label: stack.enter_context(_Worker(one)) for one in contestants}
        active = {label: worker for label, worker in workers.items() if worker.failed is None}
        in_turn({label: partial(one.measure, seconds) for label, one in active.items()}, repeats)
        return {
            one.label: {"name": one.name, "dtype": one.dtype, **workers[one.label].result()}
            for one in contestants
        }


def rates(rounds: Sequence[float], tokens: int, flops: float, peak: float) -> dict:
    """Returns summaries of `tokens_per_second`, `flops` (useful ones per second), `share_of_peak`.

    `rounds` are the seconds of a run in each round, `tokens` and `flops` the numbers of tokens and
    operations of one run, and `peak` is the operations per second of the fastest product.
    """
    return {
        "tokens_per_second": summary(tokens / seconds for seconds in rounds),
        "flops": summary(flops / seconds for seconds in rounds),
        "share_of_peak": summary(flops / seconds / peak for seconds in rounds),
    }


def ratio_to(result, ours):
    """Returns the `summary` over the rounds of a time divided by ours; None without ours."""
    return ratios(result["rounds"], ours["rounds"]) if ours and "rounds" in ours else None


def measure_peaks(dtypes: Iterable[str], seconds: float = 1.5) -> dict[str, float]:
    """Measures the fastest product of square matrices of each dtype, operations per second."""
    return {dtype: in_new_process(measure_peak, dtype, seconds)[0] for dtype in dtypes}


def contest_lines(peaks: dict[str, float], contestants: dict) -> Iterator[str]:
    """Yields the peaks, who could not be measured, and the versions of the others."""
    for dtype, flops in peaks.items():
        yield f"fastest square product in {dtype}: {flops / 1e9:,.0f} GFLOP/s"
    versions = {}
    for label, found in contestants.items():
        if "failed" in found:
            yield f"{label}: {found['failed']}"
        versions |= found.get("facts", {}).get("versions", {})
    if versions:
        yield ", ".join(" ".join(pair) for pair in versions.items())


class _Worker:
    """A contestant's process, seen from the process that holds the contest."""

    def __init__(self, contestant):
        self.failed = None
        self._label = contestant.label
        self._rounds = []
        self._is_over = False
        self._process = None
        if any(importlib.util.find_spec(name) is None for name in contestant.needs):
            self._fail(NOT_INSTALLED)
            return
        logger.info("preparing %s", contestant.label)
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(theirs, contestant.prepare, contestant.arguments),
            name=contestant.label,
        )
        with isolated_spawning():
            self._process.start()
        theirs.close()  # so that the end of the process is noticed here
        self._started = self._receive(_PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._process is not None:
            self._connection.close()
            if self._is_over:  # libraries remove what they have in shared memory
                self._process.join(_EXIT_SECONDS)
            self._process.kill()
            self._process.join()

    def measure(self, seconds):
        if self.failed is None and (times := self._request(seconds, _PATIENCE + seconds)):
            self._rounds.append(times)

    def result(self) -> dict:
        """Returns what `hold_contest` reports of this contestant."""
        last = self._request(None, _PATIENCE) if self.failed is None else None
        if last is None:
            return {"failed": self.failed}
        self._is_over = True
        means = [statistics.fmean(times) for times in self._rounds]
        times = [seconds for times in self._rounds for seconds in times]
        return {"seconds": summary(means), "rounds": means, "times": times, **self._started, **last}

    def _request(self, order, patience):
        with contextlib.suppress(OSError):  # a process that has ended is reported below
            self._connection.send(order)
        return self._receive(patience)

    def _receive(self, patience):
        try:
            if not self._connection.poll(patience):
                self._process.kill()
                return self._fail(f"it did not respond for {patience:.0f} s")
            kind, value = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            how = f"signal {-code}: out of memory, or killed" if code < 0 else f"exit code {code}"
            return self._fail(f"its process ended with {how}")
        return value if kind == "done" else self._fail(value)

    def _fail(self, reason):
        self.failed = reason
        logger.warning("%s cannot be measured: %s", self._label, reason)


def _serve(connection, prepare, arguments):
    """Runs in the contestant's process: prepares, then follows orders until there are no more."""
    end_with_parent()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.dup2(2, 1)  # what libraries print is not the result of a command
    try:
        started = time.perf_counter()
        prepared = prepare(*arguments)
        before = peak_mb()
        prepared.run()
        start_seconds = time.perf_counter() - started
        _time_runs(prepared.run, _WARM_UP)
        _release_memory()
        connection.send(("done", {"start_seconds": start_seconds}))
        while (seconds := connection.recv()) is not None:
            _time_runs(prepared.run, _RESUME)
            connection.send(("done", _time_runs(prepared.run, seconds=seconds)))
            _release_memory()
        peak = peak_mb()
        memory = {"peak_mb": peak, "step_mb": peak - before}
        connection.send(("done", {**memory, "facts": prepared.facts}))
    except (EOFError, BrokenPipeError):
        return  # the contest is over
    except Exception as error:
        logger.debug("a contestant failed", exc_info=True)
        text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        connection.send(("failed", text.strip().splitlines()[0][:_MAX_REASON_LENGTH]))


def _time_runs(run, least=1, seconds=0.0):
    """Returns the seconds of single runs: at least some, and more until the time is over."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times


def end_with_parent():
    """Ends this process when its parent has ended, and first when memory runs out."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(OSError):  # not on this system, or not allowed
        Path("/proc/self/oom_score_adj").write_text("1000")


def _release_memory():
    # Waiting contestants would otherwise hold what they have freed, and together fill the machine.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
