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
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import util
from pathlib import Path

from data_pipeline.errors import InputError

_ROOT = Path(__file__).resolve().parents[1]  # the folder of both packages
#: First line of each program. Only `sys`, which is part of the interpreter, may be imported there.
_DROP_CURRENT_FOLDER = "import sys; sys.path[:] = [entry for entry in sys.path if entry]\n"
#: Runs a module with the places of modules of the parent process.
_RUN_MODULE = """
import json, runpy
paths, module, *arguments = sys.argv[1:]
sys.path[:] = json.loads(paths)
sys.argv = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str | Path) -> list[str]:
    """Returns the command that runs a module as a program, to be started with `environment()`.

    The new process finds what this process finds in `sys.path`, except in the current folder, and
    both packages.
    """
    paths = [entry for entry in sys.path if not _is_current_folder(entry)]
    return code_command(_RUN_MODULE, json.dumps([*paths, str(_ROOT)]), module, *arguments)


def code_command(code: str, *arguments: str | Path) -> list[str]:
    """Returns the command that runs Python code, to be started with `environment()`."""
    return [sys.executable, "-c", _DROP_CURRENT_FOLDER + code, *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    """Returns the environment variables of this process with `changes`, for a new process.

    The current folder is removed from `PYTHONPATH`, where an empty entry means the same folder.
    """
    variables = os.environ | changes
    if "PYTHONPATH" in variables:
        entries = variables["PYTHONPATH"].split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join(
            entry for entry in entries if not _is_current_folder(entry)
        )
    return variables


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
        """Hands a task over; if that starts a process, Ctrl-C is blocked in it."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with isolated_spawning():
                return self._executor.submit(_run, function, task)
        except OSError:  # an executor that breaks meanwhile closes the pipes of the new process
            if not getattr(self._executor, "_broken", False):
                raise
            raise BrokenProcessPool from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(prepare, arguments, lifeline):
    """Runs at the start of each process."""
    global _context
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    _context = prepare(*arguments)


def _run(function, task):
    return function(_context, task)


def _end_with_parent(lifeline):
    """Ends this process when the parent closes its end of a pipe, or ends itself."""
    lifeline.poll(None)
    os._exit(1)


def _is_current_folder(entry):
    return os.path.realpath(entry) == os.path.realpath(os.getcwd())  # "" is the current folder
