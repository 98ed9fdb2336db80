"""Runs tasks in processes that never outlive the process that started them, and logs the progress.

Processes are spawned, not forked: they load only what their tasks need, no TensorFlow and none of
the parent's threads. Each has a connection of its own, on which nothing is sent to it before it
asks. So a process that ends, whatever it was doing, never leaves another one waiting: neither for
a lock that it held, nor for room in a pipe that nobody reads any more.
"""

import collections
import contextlib
import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait

from data_pipeline.child_processes import isolated_spawning
from data_pipeline.errors import InputError
from data_pipeline.progress import ProgressLines, State, bar, format_duration

logger = logging.getLogger(__name__)

#: What workers count.
_NAMES = ("bytes", "documents", "records")
#: Seconds that one process takes per token to write records, until it has been measured.
SECONDS_PER_TOKEN = 2e-7


class Stopped(BaseException):
    """Ends a task whose result is no longer needed."""


class LocalCounters:
    """Counters of a single process; `tick` is called after each change."""

    def __init__(self, tick):
        self._values, self._tick = Counter(dict.fromkeys(_NAMES, 0)), tick

    def add(self, **counts):
        """Adds to some of the counters."""
        self._values.update(counts)
        self._tick()

    def values(self):
        """Returns all counters as a dict."""
        return dict(self._values)


class SharedCounters:
    """Counters of several processes of a multiprocessing context."""

    def __init__(self, context):
        self._values = context.Array("q", len(_NAMES) + 1)  # the last one: has been stopped

    def add(self, **counts):
        """Adds to some of the counters; ends the task if the build has been stopped."""
        with self._values.get_lock():
            for name, count in counts.items():
                self._values[_NAMES.index(name)] += count
            stopped = self._values[-1]
        if stopped:
            raise Stopped

    def stop(self):
        """Makes every task end when it next counts something."""
        self._values.get_obj()[-1] = 1  # without the lock, which an ended worker may hold

    @property
    def stopped(self):
        """bool. Whether `stop` has been called."""
        return bool(self._values.get_obj()[-1])

    def values(self):
        # Without the lock, for the same reason; each number is written at once.
        return dict(zip(_NAMES, self._values.get_obj()[: len(_NAMES)], strict=True))


class Progress:
    """Logs a line from time to time: fraction, speed, finished shards, remaining time."""

    def __init__(self, total_bytes: int | None, copies: int, num_workers: int):
        self._total_bytes, self._lines = total_bytes, ProgressLines(logger)
        self._seconds_per_token = copies * SECONDS_PER_TOKEN / num_workers
        self._values = lambda: dict.fromkeys(_NAMES, 0)
        self._tokens = self._reused_bytes = 0
        self._num_shards = self._num_reused = self._num_finished = None

    def watch(self, values):
        """Starts to report counters; `values` is a function that returns them."""
        self._values = values

    def finished_part(self, num_tokens, reused_bytes):
        """Notes the tokens of a part, and its bytes if it was encoded by an earlier attempt."""
        self._tokens += num_tokens
        self._reused_bytes += reused_bytes

    def begin_writing(self, num_shards, num_reused):
        """Starts the second pass; some shards may exist already."""
        self._num_shards, self._num_reused, self._num_finished = num_shards, num_reused, num_reused
        self._lines.restart()

    def finished_shard(self):
        self._num_finished += 1

    def tick(self):
        """Logs a line if it is time for one."""
        self._lines.tick(self._encoding if self._num_shards is None else self._writing)

    def _encoding(self, seconds):
        values = self._values()
        megabytes = values["bytes"] / 1e6
        rate = megabytes / seconds
        speed = f"{rate:.1f} MB/s  {values['documents'] / seconds:,.0f} documents/s"
        if not self._total_bytes:
            text = f"reading  {megabytes:,.0f} MB  {speed}"
            return State(text, "reading", megabytes, None, "MB", rate, None)
        done = min(values["bytes"] + self._reused_bytes, self._total_bytes)
        remaining = (self._total_bytes - done) * seconds / max(values["bytes"], 1)
        tokens = self._tokens / max(done, 1) * self._total_bytes
        remaining += tokens * self._seconds_per_token
        eta = format_duration(remaining)
        text = f"reading  {bar(done / self._total_bytes)}  {speed}  ETA {eta}"
        return State(text, "reading", done / 1e6, self._total_bytes / 1e6, "MB", rate, remaining)

    def _writing(self, seconds):
        done, total, reused = self._num_finished, self._num_shards, self._num_reused
        records = self._values()["records"]
        written = (done - reused) / max(total - reused, 1)
        remaining = self._tokens * self._seconds_per_token
        if written:
            remaining = seconds * (1 - written) / written
        note = f"  ({reused} re-used)" if reused else ""
        text = (
            f"writing  {bar(done / total)}  {done}/{total} shards{note}  "
            f"{records / seconds:,.0f} records/s  ETA {format_duration(remaining)}"
        )
        rate = (done - reused) / seconds
        return State(text, "writing", done, total, "shards", rate, remaining)


_SECONDS_BETWEEN_TICKS = 0.25
#: How often a worker looks for a stop, and the time that its task then gets to end by itself.
_SECONDS_BETWEEN_LOOKS, _SECONDS_TO_STOP = 0.1, 0.2
#: The time that the processes get to end; those that still run are killed.
_SECONDS_TO_END = 5
#: What a process sends: that it runs, that it is prepared, and the outcome of each task.
_STARTED, _READY, _RESULT, _ERROR = "started", "ready", "result", "error"


class Workers:
    """Runs tasks in a number of processes, or in this one if the count is 1.

    `prepare(*arguments, counters)` is called once in each process; its result is the first argument
    of every task. It must be a function of a module, so that it can be sent. `tick` is called
    several times a second while tasks run; `counters.values()` are the sums over all tasks so far.
    """

    def __init__(self, count: int, prepare: Callable, arguments: tuple, tick: Callable[[], None]):
        self._tick, self._count = tick, count
        self._prepare, self._arguments = prepare, arguments
        self._processes: dict = {}  # this end of the connection -> process
        self._waiting: list = []  # connections of the processes without a task
        if count == 1:
            self.counters = LocalCounters(tick)
            self._context = prepare(*arguments, self.counters)
        else:
            self._spawner = multiprocessing.get_context("spawn")
            with isolated_spawning():  # the locks of the counters start a process that tracks them
                self.counters = SharedCounters(self._spawner)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self._processes:
            return
        self.counters.stop()  # running tasks end when they next count something, or soon after
        for connection in self._processes:
            connection.close()
        deadline = time.monotonic() + _SECONDS_TO_END
        for process in self._processes.values():
            process.join(max(0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def run(self, function: Callable, tasks: Iterable) -> Iterator:
        """Yields the results of `function(context, task)` for all tasks, as they are completed.

        Tasks are only taken from the iterable when a process is free for them, or soon will be, so
        it may be long. Raises InputError if a process was killed.
        """
        if self._count == 1:
            for task in tasks:
                yield function(self._context, task)
                self._tick()
            return
        tasks, ready, is_exhausted, num_running = iter(tasks), collections.deque(), False, 0
        while True:
            while ready and self._waiting:
                self._send(self._waiting.pop(), (function, ready.popleft()))
                num_running += 1
            if not is_exhausted and len(ready) < self._count:
                try:
                    ready.append(next(tasks))
                except StopIteration:
                    is_exhausted = True
            if is_exhausted and not ready and not num_running:
                return
            self._start_processes(min(self._count, len(ready) + num_running))
            # As long as more tasks can be taken meanwhile, this only looks.
            may_wait = is_exhausted or len(ready) == self._count
            for result in self._receive(_SECONDS_BETWEEN_TICKS if may_wait else 0):
                num_running -= 1
                yield result
            self._tick()

    def _start_processes(self, count):
        while len(self._processes) < count:
            ours, theirs = self._spawner.Pipe()
            # Few bytes are sent at the start: `Process.start` would wait for ever for room in a
            # pipe if the process ends before it has read them.
            process = self._spawner.Process(target=_work, args=(theirs, self.counters), daemon=True)
            with _ctrl_c_deferred(), isolated_spawning():
                process.start()
                self._processes[ours] = process
            theirs.close()

    def _receive(self, seconds):
        """Returns the results that arrive in this time, and answers processes that have started."""
        sentinels = [process.sentinel for process in self._processes.values()]
        results = []
        for connection in wait([*self._processes, *sentinels], seconds):
            if isinstance(connection, int):
                raise _ended()
            try:
                kind, content = connection.recv()
            except (EOFError, OSError):
                raise _ended() from None
            if kind == _ERROR:
                error, text = content
                raise error from RuntimeError(f"in a worker process:\n{text}")
            if kind == _STARTED:
                self._send(connection, (self._prepare, self._arguments))
                continue
            if kind == _RESULT:
                results.append(content)
            self._waiting.append(connection)
        return results

    def _send(self, connection, message):
        try:
            connection.send(message)
        except OSError:
            raise _ended() from None


def num_processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _ended():
    return InputError(
        "A worker process ended before its work was done: it ran out of memory, was killed, or was "
        'started from a script without `if __name__ == "__main__":`. Finished parts and shards are '
        "kept: repeat the command to resume. Fewer workers need less memory."
    )


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


def _work(connection, counters):
    """Runs in each process: prepares, then runs tasks until the connection is closed."""
    threading.Thread(target=_end_with_parent, args=(counters,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the connection is closed
        connection.send((_STARTED, None))
        prepare, arguments = connection.recv()
        kind, context = _outcome(prepare, *arguments, counters)
        connection.send((_READY, None) if kind == _RESULT else (kind, context))
        while True:
            function, task = connection.recv()
            outcome = _outcome(function, context, task)
            try:
                connection.send(outcome)
            except (EOFError, OSError):
                raise
            except Exception:  # it cannot be sent
                connection.send((_ERROR, (RuntimeError("no result"), traceback.format_exc())))


def _outcome(function, *arguments):
    try:
        return _RESULT, function(*arguments)
    except BaseException as error:
        return _ERROR, (error, traceback.format_exc())


def _end_with_parent(counters):
    """Ends this process when its parent ends, or when it is still busy after a stop."""
    sentinels = [multiprocessing.parent_process().sentinel]
    while not wait(sentinels, _SECONDS_BETWEEN_LOOKS):
        if counters.stopped:
            time.sleep(_SECONDS_TO_STOP)
            break
    os._exit(1)
