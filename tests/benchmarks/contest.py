"""A contest: each contestant in a process of its own, one running while the others wait."""

import contextlib
import ctypes
import logging
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from albert_keras.report import table
from albert_keras.training.process_memory import peak_mb
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from tests.benchmarks.measure import NewProcess, in_new_process
from tests.benchmarks.peak import measure_peak

logger = logging.getLogger(__name__)

OURS = "ours"
#: Runs that do not count: after the very first one, and each time a contestant resumes.
_WARM_UP, _RESUME = 2, 1


class Contestant(NamedTuple):
    """A program that is compared with others."""

    name: str  #: Such as "transformers"; `OURS` for ours.
    dtype: str  #: "float32" or "bfloat16", what it multiplies in.
    prepare: Callable  #: Returns a Prepared, in the contestant's process; a function of a module.
    arguments: tuple = ()  #: They are pickled.


class Prepared(NamedTuple):
    """What a contestant measures."""

    run: Callable[[], object]  #: Runs one step and waits for its result.
    facts: dict  #: `weights`, `first_loss` and `last_loss`, read after all runs.
    peak_mb: Callable[[], float] = peak_mb  #: Peak memory: of its process, or of its GPU.


class Measured(NamedTuple):
    """What was found of a contestant."""

    name: str
    dtype: str
    rounds: list[float]  #: Mean seconds of a run in each round.
    peak_mb: float  #: Peak memory of its process, on a GPU of its tensors there.
    facts: dict[str, Any]  #: Those of Prepared, and `start_seconds`, with the first run.

    @property
    def seconds(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)


def check_names(option: str, names: Iterable[str], known: Iterable[str]):
    """Raises InputError for a name that is not among the known ones."""
    for name in names:
        if name not in known:
            raise InputError(f"`{name}` is not a known {option}{did_you_mean(name, known)}")


def hold_contest(contestants: Sequence[Contestant], repeats: int, seconds: float) -> list[Measured]:
    """Measures contestants in turn, for `seconds` in each of `repeats` rounds.

    Each has one process throughout, so that it compiles once; it waits while another one runs.
    Every second round runs backwards. The first run, two more, and one whenever a contestant
    resumes do not count. What a contestant raises ends the contest.
    """
    with contextlib.ExitStack() as stack:
        calls, starts = [], []
        for one in contestants:
            logger.info("preparing %s, %s", one.name, one.dtype)
            calls.append(stack.enter_context(NewProcess()).call)
            starts.append(calls[-1](_prepare, one.prepare, one.arguments))
        rounds: list[list[float]] = [[] for _ in contestants]
        for repeat in range(repeats):
            logger.info("round %d of %d", repeat + 1, repeats)
            turns = list(zip(calls, rounds, strict=True))
            for call, found in reversed(turns) if repeat % 2 else turns:
                found.append(call(_mean_seconds, seconds))
        ends = [call(_end) for call in calls]
    return [
        Measured(one.name, one.dtype, found, peak, facts | {"start_seconds": start})
        for one, found, (peak, facts), start in zip(contestants, rounds, ends, starts, strict=True)
    ]


def contest_lines(results: Sequence[Measured], tokens: int) -> Iterator[str]:
    """Yields a table of results, and the fastest product of each dtype, which it measures.

    Args:
        results: Of contestants, ours of each dtype among them.
        tokens: Tokens of a run.
    """
    dtypes = dict.fromkeys(one.dtype for one in results)
    peaks = {dtype: in_new_process(measure_peak, dtype) for dtype in dtypes}
    for dtype, peak in peaks.items():
        yield f"fastest square product in {dtype}: {peak / 1e9:,.0f} GFLOP/s"
    ours = {one.dtype: one for one in results if one.name == OURS}
    header = ["", "dtype", "ms", "tokens/s", "peak MB", "first run"]
    header += ["ours: times faster", "weights", "first loss", "last loss"]
    rows = []
    for one in results:
        ratios = [its / our for its, our in zip(one.rounds, ours[one.dtype].rounds, strict=True)]
        rows.append(
            [
                *(one.name, one.dtype, _shown([1e3 * each for each in one.rounds], ".1f")),
                f"{tokens / one.seconds:,.0f}",
                f"{one.peak_mb:,.0f}",
                f"{one.facts['start_seconds']:.0f} s",
                _shown(ratios, ".2f") if one.name != OURS else "",
                f"{one.facts['weights']:,}",
                *(f"{one.facts[name]:.2f}" for name in ("first_loss", "last_loss")),
            ]
        )
    yield from table(header, rows, left=(0, 1))


def _shown(values, form):
    """Returns values as "median [lowest..highest]"."""
    middle, lowest, highest = (
        format(value, form) for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} [{lowest}..{highest}]"


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
    return _prepared.peak_mb(), _prepared.facts


def _release_memory():
    # Waiting contestants would otherwise hold what they have freed, and together fill the machine.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
