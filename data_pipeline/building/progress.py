"""Progress of a build: counted by the workers, logged by the process that runs them."""

import logging
from collections import Counter

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
