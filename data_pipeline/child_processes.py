"""New Python processes: how they start, and workers that never outlive the one that started them.

They start without the current folder among the places of modules. `python -m` and `python -c` put
the current folder first, so that a `typing.py` in a folder of somebody else's files would be
executed. All processes that the two packages start therefore start here. `-P` does the same from
Python 3.11 on only, and `-I` ignores settings such as `PYTHONHASHSEED` too.

Workers are spawned, not forked: they load only what their tasks need, no TensorFlow and none of the
parent's threads.
"""

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import util

from data_pipeline.errors import InputError


def code_command(code: str, *arguments: str) -> list[str]:
    """Returns the command that runs Python code in a new process.

    It finds the modules that this process finds, except in the current folder.
    """
    here = os.path.realpath(os.getcwd())
    paths = [entry for entry in sys.path if os.path.realpath(entry) != here]  # "" is here, too
    # Only `sys`, which is part of the interpreter, may be imported before the places are set.
    return [sys.executable, "-c", f"import sys; sys.path[:] = {paths!r}\n{code}", *arguments]


@contextlib.contextmanager
def isolated_spawning() -> Iterator[None]:
    """Makes the processes that `multiprocessing` spawns within the block start isolated (`-I`).

    Once started, they have the `sys.path` of this process. `multiprocessing` itself only passes on
    whether this process is isolated.
    """
    flags = util._args_from_interpreter_flags
    util._args_from_interpreter_flags = lambda: ["-I", *flags()]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = flags


def num_processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


#: In a worker: the first argument of its tasks.
_context = None


class Workers:
    """Runs tasks in a number of processes, or in this one if the count is 1.

    `prepare(*arguments)` is called once in each process; its result is the first argument of
    every task. It must be a function of a module, so that it can be sent, and its arguments must be
    small: a process that is killed at its start never reads them, and they have to fit into a pipe.
    """

    def __init__(self, count: int, prepare: Callable, arguments: tuple):
        self._count = count
        if count == 1:
            self._context = prepare(*arguments)
            return
        spawner = multiprocessing.get_context("spawn")
        # No one writes to this pipe: the workers read its end when it is closed, or this process
        # has ended.
        reader, self._lifeline = spawner.Pipe(duplex=False)
        settings = (prepare, arguments, reader)
        with isolated_spawning():  # the locks of the executor start a process that tracks them
            self._executor = ProcessPoolExecutor(count, spawner, _begin, settings)

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if self._count > 1:
            if error:
                self._lifeline.close()  # running tasks end at once
            self._executor.shutdown(cancel_futures=True)
            self._lifeline.close()

    def run(self, function: Callable, tasks: Iterable) -> Iterator:
        """Yields the results of `function(context, task)` for all tasks, as they are completed.

        Tasks are only taken from the iterable when a process is free for them, or soon will be, so
        it may be long. Raises InputError if a process was killed.
        """
        if self._count == 1:
            yield from (function(self._context, task) for task in tasks)
            return
        tasks, running = iter(tasks), set()
        try:
            while True:
                for task in itertools.islice(tasks, 2 * self._count - len(running)):
                    running.add(self._submit(function, task))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        except BrokenProcessPool:
            raise InputError(
                "A worker process ended before its work was done: it ran out of memory, was "
                'killed, or was started from a script without `if __name__ == "__main__":`. '
                "Finished parts and shards are kept: repeat the command to resume. Fewer workers "
                "need less memory."
            ) from None

    def _submit(self, function, task):
        try:
            with isolated_spawning():  # this may start a process
                return self._executor.submit(_run, function, task)
        except OSError as error:  # the pool breaks, or no process can be started
            raise BrokenProcessPool from error


def _begin(prepare, arguments, lifeline):
    """Runs at the start of each process, which ends with its parent, not by Ctrl-C itself."""
    global _context
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    _context = prepare(*arguments)


def _run(function, task):
    return function(_context, task)


def _end_with_parent(lifeline):
    """Ends this process when the parent closes its end of a pipe, or ends itself."""
    lifeline.poll(None)
    os._exit(1)
