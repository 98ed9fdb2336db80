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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from albert_keras.benchmarks.measure import in_turn, peak_mb, summary
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Runs that do not count: after the first one of all, and each time a contestant wakes up.
_WARM_UP, _WAKE_UP = 2, 1
#: How long a contestant may be silent, in seconds, beyond what it was asked to measure.
_PATIENCE = 900
_FAREWELL = 5
_LONGEST_REASON = 200
_NOT_INSTALLED = "not installed: pip install albert-keras[bench]"


class Contestant(NamedTuple):
    """One of those who are compared.

    Attributes:
        name: str. Such as "transformers, compiled".
        dtype: str. "float32", "bfloat16" or another: what it multiplies in.
        prepare: callable of a module. Makes a Prepared from `arguments`, in the own process.
        arguments: tuple. They are pickled.
        needs: tuple of str. Packages without which it takes no part, as they are imported.
    """

    name: str
    dtype: str
    prepare: Callable
    arguments: tuple = ()
    needs: tuple = ()

    @property
    def label(self):
        """str. Name and dtype."""
        return f"{self.name}, {self.dtype}"


class Prepared(NamedTuple):
    """What a contestant measures.

    Attributes:
        run: callable without arguments. Makes one step or one answer and waits for its result.
        facts: dict for JSON, such as the number of weights. `run` may change it: it is read once
            all runs are over.
    """

    run: Callable
    facts: dict


def hold_contest(contestants, repeats, seconds):
    """Measures contestants in turn.

    Each has a process of its own from first to last, so that it compiles once; it waits while
    another one runs. Rounds go forwards and backwards in turn. The first run, two more, and one
    whenever a contestant wakes up do not count. No process outlives this one.

    Args:
        contestants: sequence of Contestant, their labels different from each other.
        repeats: int. Rounds.
        seconds: float. How long each is measured in a round; at least one run is.

    Returns:
        dict of label to dict for JSON, each with `name` and `dtype`, and either `failed`, why it
        could not be measured (str), or
        `rounds`, mean seconds of a run in each round; `seconds`, the `summary` of them; `times`,
        seconds of all single runs; `start_seconds`, of preparing it and of the first run, which
        compiles; `peak_mb`, the most its process ever held; `step_mb`, how much of that came on top
        once it was prepared; `facts`.

    Raises:
        InputError: If two labels are the same, or there is nothing to measure.
    """
    labels = [contestant.label for contestant in contestants]
    if len(set(labels)) < len(labels):
        raise InputError(f"Contestants should have labels of their own. Received: {labels}.")
    if repeats < 1 or seconds < 0:
        raise InputError(
            "A contest should have at least one round, of 0 seconds or more. Received: "
            f"{repeats} round(s) of {seconds} s."
        )
    with contextlib.ExitStack() as stack:
        seats = {}
        for contestant in contestants:
            seats[contestant.label] = stack.enter_context(_Seat(contestant))
        active = {label: seat for label, seat in seats.items() if seat.failed is None}
        in_turn({label: partial(seat.measure, seconds) for label, seat in active.items()}, repeats)
        return {
            label: {"name": contestant.name, "dtype": contestant.dtype, **seats[label].result()}
            for label, contestant in zip(labels, contestants, strict=True)
        }


class _Seat:
    """A contestant's process, seen from the one that holds the contest."""

    def __init__(self, contestant):
        self.failed = None
        self._label = contestant.label
        self._rounds = []
        self._is_over = False
        self._process = None
        missing = [name for name in contestant.needs if importlib.util.find_spec(name) is None]
        if missing:
            self._fail(_NOT_INSTALLED)
            return
        logger.info("preparing %s", contestant.label)
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve,
            args=(theirs, contestant.prepare, contestant.arguments),
            name=contestant.label,
        )
        self._process.start()
        theirs.close()  # so that the end of the process is seen here
        self._started = self._receive(_PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._process is not None:
            self._connection.close()
            if self._is_over:  # libraries want to remove what they have in shared memory
                self._process.join(_FAREWELL)
            self._process.kill()
            self._process.join()

    def measure(self, seconds):
        """Lets the contestant run for some time."""
        if self.failed is None and (times := self._ask(seconds, _PATIENCE + seconds)):
            self._rounds.append(times)

    def result(self):
        """Returns what `hold_contest` tells of this contestant (dict)."""
        last = self._ask(None, _PATIENCE) if self.failed is None else None
        if last is None:
            return {"failed": self.failed}
        self._is_over = True
        means = [statistics.fmean(times) for times in self._rounds]
        return {
            "seconds": summary(means),
            "rounds": means,
            "times": [seconds for times in self._rounds for seconds in times],
            **self._started,
            **last,
        }

    def _ask(self, order, patience):
        with contextlib.suppress(OSError):  # a process that is gone is told below
            self._connection.send(order)
        return self._receive(patience)

    def _receive(self, patience):
        try:
            if not self._connection.poll(patience):
                self._process.kill()
                return self._fail(f"it gave no answer for {patience:.0f} s")
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
    """Runs in the contestant's process: prepares, then obeys orders until there are no more."""
    _go_with_parent()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    os.dup2(2, 1)  # what libraries print is not the result of a command
    try:
        started = time.perf_counter()
        prepared = prepare(*arguments)
        before = peak_mb()
        prepared.run()
        started = {"start_seconds": time.perf_counter() - started}
        _times(prepared.run, _WARM_UP)
        _give_memory_back()
        connection.send(("done", started))
        while (seconds := connection.recv()) is not None:
            _times(prepared.run, _WAKE_UP)
            connection.send(("done", _times(prepared.run, seconds=seconds)))
            _give_memory_back()
        peak = peak_mb()
        memory = {"peak_mb": peak, "step_mb": peak - before}
        connection.send(("done", {**memory, "facts": prepared.facts}))
    except (EOFError, BrokenPipeError):
        return  # the contest is over
    except Exception as error:
        logger.debug("a contestant failed", exc_info=True)
        connection.send(("failed", _reason(error)))


def _reason(error):
    text = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
    return text.strip().splitlines()[0][:_LONGEST_REASON]


def _times(run, least=1, seconds=0.0):
    """Returns the seconds of single runs: at least some, and more until the time is over."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return times


def _go_with_parent():
    """Ends this process when its parent is gone, and before others when memory runs out."""

    def watch():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(OSError):  # not on this system, or not allowed
        Path("/proc/self/oom_score_adj").write_text("1000")


def _give_memory_back():
    # Those that wait would otherwise keep what they freed, and many of them fill the machine.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
