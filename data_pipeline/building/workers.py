"""Runs tasks in processes that never outlive the process that started them.

Processes are spawned, not forked: they load only what their tasks need, no TensorFlow and none of
the parent's threads.
"""

import itertools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection

from data_pipeline.child_processes import isolated_spawning
from data_pipeline.errors import InputError


class Stopped(BaseException):
    """Ends a task whose result is no longer needed."""


class LocalMeter:
    """Counts what the tasks of a single process have done, and reports the sum."""

    def __init__(self):
        self.count = 0
        self.report = lambda count: None

    def add(self, count: int = 0) -> None:
        """Adds to the count."""
        self.count += count
        self.report(self.count)


class SharedMeter:
    """Counts what the tasks of several processes of a multiprocessing context have done."""

    def __init__(self, context):
        self._values = context.Array("q", 2)  # the count; whether it has been stopped

    def add(self, count: int = 0) -> None:
        """Adds to the count; ends the task if the work has been stopped."""
        with self._values.get_lock():
            self._values[0] += count
            stopped = self._values[1]
        if stopped:
            raise Stopped

    # Without the lock, which an ended worker may hold; each number is written at once.

    @property
    def count(self):
        return self._values.get_obj()[0]

    def stop(self):
        """Makes every task end when it next counts something."""
        self._values.get_obj()[1] = 1

    @property
    def stopped(self):
        """bool. Whether `stop` has been called."""
        return bool(self._values.get_obj()[1])


_SECONDS_BETWEEN_REPORTS = 0.25
#: How often a worker looks for a stop, and the time that its task then gets to end by itself.
_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_STOP = 0.1, 0.2
#: In a worker: the first argument of its tasks.
_context = None


class Workers:
    """Runs tasks in a number of processes, or in this one if the count is 1.

    `prepare(*arguments, meter)` is called once in each process; its result is the first argument of
    every task. It must be a function of a module, so that it can be sent, and its arguments must be
    small: a process that is killed at its start never reads them, and they have to fit into a pipe.
    """

    def __init__(self, count: int, prepare: Callable, arguments: tuple):
        self._count = count
        self._meter: LocalMeter | SharedMeter
        if count == 1:
            self._meter = LocalMeter()
            self._context = prepare(*arguments, self._meter)
            return
        spawner = multiprocessing.get_context("spawn")
        with isolated_spawning():  # the lock of the meter starts a process that tracks it
            self._meter = SharedMeter(spawner)
        settings = (prepare, arguments, self._meter)
        self._executor = ProcessPoolExecutor(count, spawner, _begin, settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._count > 1:
            self._meter.stop()  # running tasks end when they next count something, or soon after
            self._executor.shutdown(cancel_futures=True)

    def run(
        self,
        function: Callable,
        tasks: Iterable,
        report: Callable[[int], None] = lambda count: None,
    ) -> Iterator:
        """Yields the results of `function(context, task)` for all tasks, as they are completed.

        Tasks are only taken from the iterable when a process is free for them, or soon will be, so
        it may be long. `report` gets the count of the meter, several times a second. Raises
        InputError if a process was killed.
        """
        if self._count == 1:
            self._meter.report = report
            yield from (function(self._context, task) for task in tasks)
            return
        tasks, running = iter(tasks), set()
        try:
            while True:
                for task in itertools.islice(tasks, 2 * self._count - len(running)):
                    running.add(self._submit(function, task))
                if not running:
                    return
                done, running = wait(running, _SECONDS_BETWEEN_REPORTS, FIRST_COMPLETED)
                for future in done:
                    yield future.result()
                report(self._meter.count)
        except BrokenProcessPool:
            raise InputError(
                "A worker process ended before its work was done: it ran out of memory, was "
                'killed, or was started from a script without `if __name__ == "__main__":`. '
                "Finished parts and shards are kept: repeat the command to resume. Fewer workers "
                "need less memory."
            ) from None

    def _submit(self, function, task):
        """Hands a task over; if that starts a process, Ctrl-C is blocked in it."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with isolated_spawning():
                return self._executor.submit(_run, function, task)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def num_processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _begin(prepare, arguments, meter):
    """Runs at the start of each process."""
    global _context
    threading.Thread(target=_end_with_parent, args=(meter,), daemon=True).start()
    _context = prepare(*arguments, meter)


def _run(function, task):
    return function(_context, task)


def _end_with_parent(meter):
    """Ends this process when its parent ends, or when it is still busy after a stop."""
    sentinels = [multiprocessing.parent_process().sentinel]
    while not connection.wait(sentinels, _SECONDS_BETWEEN_LOOKS):
        if meter.stopped:
            time.sleep(_SECONDS_TO_STOP)
            break
    os._exit(1)
