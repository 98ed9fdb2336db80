"""Runs tasks in processes that never outlive the process that started them.

Processes are spawned, not forked: they load only what their tasks need, no TensorFlow and none of
the parent's threads.
"""

import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from data_pipeline.building.progress import LocalCounters, SharedCounters
from data_pipeline.child_processes import isolated_spawning
from data_pipeline.errors import InputError

_SECONDS_BETWEEN_TICKS = 0.25
#: How often a worker looks for a stop, and the time that its task then gets to end by itself.
_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_STOP = 0.1, 0.2

#: In a worker process: the result of `prepare` there.
_context = None


class Workers:
    """Runs tasks in a number of processes, or in this one if the count is 1.

    `prepare(*arguments, counters)` is called once in each process; its result is the first argument
    of every task. It must be a function of a module, so that it can be sent. `tick` is called
    several times a second while tasks run; `counters.values()` are the sums over all tasks so far.
    """

    def __init__(self, count: int, prepare: Callable, arguments: tuple, tick: Callable[[], None]):
        self._tick, self._pool = tick, None
        if count == 1:
            self.counters = LocalCounters(tick)
            self._context = prepare(*arguments, self.counters)
            return
        context = multiprocessing.get_context("spawn")
        self._in_flight = 2 * count
        with isolated_spawning():  # counters start a process that tracks their locks
            self.counters = SharedCounters(context)
            self._pool = concurrent.futures.ProcessPoolExecutor(
                count, context, _start, (prepare, arguments, self.counters)
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._pool:
            self.counters.stop()  # running tasks end when they next count something, or soon after
            self._pool.shutdown(cancel_futures=True)

    def run(self, function, tasks):
        """Yields the results of `function(context, task)` for all tasks, as they are completed.

        Tasks are only taken from the iterable when a process is free for them, so it may be long.
        Raises InputError if a process was killed.
        """
        if not self._pool:
            for task in tasks:
                yield function(self._context, task)
                self._tick()
            return
        tasks, futures = iter(tasks), set()
        try:
            while True:
                for task in itertools.islice(tasks, self._in_flight - len(futures)):
                    with _ctrl_c_deferred(), isolated_spawning():
                        futures.add(self._pool.submit(_run, function, task))
                if not futures:
                    return
                done, futures = concurrent.futures.wait(
                    futures, _SECONDS_BETWEEN_TICKS, concurrent.futures.FIRST_COMPLETED
                )
                self._tick()
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise InputError(
                "A worker process ended before its work was done: out of memory, killed, or "
                'started from a script without `if __name__ == "__main__":`. Finished parts and '
                "shards are kept: the same command resumes. Fewer workers need less memory."
            ) from None


def num_processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@contextlib.contextmanager
def _ctrl_c_deferred():
    """Delays Ctrl-C until the end of the block; processes started in it never receive one.

    They inherit the signal mask. The handler is needed as well, because Python handles the signals
    of all threads in the main thread.
    """
    received = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = is_main and signal.signal(signal.SIGINT, lambda *_: received.append(True))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        if received:
            signal.raise_signal(signal.SIGINT)


def _start(prepare, arguments, counters):
    global _context
    threading.Thread(target=_end_with_parent, args=(counters,), daemon=True).start()
    _context = prepare(*arguments, counters)


def _end_with_parent(counters):
    """Ends this process when its parent ends, or when it is still busy after a stop."""
    sentinels = [multiprocessing.parent_process().sentinel]
    while not wait(sentinels, _SECONDS_BETWEEN_LOOKS):
        if counters.stopped:
            time.sleep(_SECONDS_TO_STOP)
            break
    os._exit(1)


def _run(function, task):
    return function(_context, task)
