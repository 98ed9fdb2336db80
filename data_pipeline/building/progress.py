"""How far a build has come: counted by the workers, told by the process that runs them."""

import logging
import time

logger = logging.getLogger(__name__)

#: What workers count.
_NAMES = ("bytes", "documents", "records")
_SECONDS_BETWEEN_LINES = 5
_SECONDS_BETWEEN_BARS = 0.5
#: Seconds that one process takes per piece to write records, until there is something to measure.
SECONDS_PER_PIECE = 2e-7
_WIDTH = 20


class Stopped(BaseException):
    """Ends a task whose result nobody waits for any more."""


class LocalCounters:
    """Counts within one process.

    Args:
        tick: callable without arguments, called after each count.
    """

    def __init__(self, tick):
        self._values, self._tick = [0] * len(_NAMES), tick

    def add(self, **counts):
        """Adds to some of the counters."""
        for name, count in counts.items():
            self._values[_NAMES.index(name)] += count
        self._tick()

    def values(self):
        """Returns all counters as a dict."""
        return dict(zip(_NAMES, self._values, strict=True))


class SharedCounters:
    """Counts over several processes.

    Args:
        context: multiprocessing context.
    """

    def __init__(self, context):
        self._values = context.Array("q", len(_NAMES) + 1)

    def add(self, **counts):
        """Adds to some of the counters; ends the task if the build has been stopped."""
        with self._values.get_lock():
            for name, count in counts.items():
                self._values[_NAMES.index(name)] += count
            stopped = self._values[-1]
        if stopped:
            raise Stopped

    def stop(self):
        """Makes every task end when it counts next."""
        self._values[-1] = 1

    def values(self):
        """Returns all counters as a dict."""
        return dict(zip(_NAMES, self._values[: len(_NAMES)], strict=True))


class Progress:
    """Logs a line now and then: share, speed, shards done, time to go.

    A line that another one will soon replace has the attribute `transient`, so that a terminal can
    write it over; others are for logs, and come every few seconds.

    Args:
        total_bytes: int or None. Size of the corpus, if it is known.
        copies: int.
        num_workers: int.
        transient: bool. Whether someone shows transient lines.
    """

    def __init__(self, total_bytes, copies, num_workers, transient):
        self._total_bytes, self._copies = total_bytes, copies
        self._num_workers = num_workers
        self._interval = _SECONDS_BETWEEN_BARS if transient else _SECONDS_BETWEEN_LINES
        self._transient = transient
        self._started = self._told = time.monotonic()
        self._at_start = {}
        self._values = lambda: dict.fromkeys(_NAMES, 0)
        self._skipped_bytes = 0
        self._pieces = 0
        self._shards = None

    def watch(self, values):
        """Begins to tell of counters; `values` is a function that returns them."""
        self._values = values

    def finished_part(self, num_pieces, reused_bytes=0):
        """Notes the pieces of a part, and its bytes if they need not be encoded again."""
        self._pieces += num_pieces
        self._skipped_bytes += reused_bytes

    def begin_writing(self, num_shards, num_reused, num_pieces):
        """Begins the second pass over `num_pieces` pieces; some shards may be there already."""
        self._shards = [num_reused, num_shards, num_reused]
        self._pieces = num_pieces
        self._started = time.monotonic()
        self._at_start = self._values()

    def finished_shard(self):
        """Notes a shard."""
        self._shards[0] += 1

    def tick(self):
        """Logs a line if it is time for one."""
        now = time.monotonic()
        if now >= self._told + self._interval:
            self._told = now
            line = self._encoding(now) if self._shards is None else self._writing(now)
            logger.info("%s", line, extra={"transient": self._transient})

    def _encoding(self, now):
        values, seconds = self._values(), max(now - self._started, 1e-3)
        speed = f"{values['bytes'] / 1e6 / seconds:.1f} MB/s  {values['documents'] / seconds:,.0f}"
        if not self._total_bytes:
            return f"reading  {values['bytes'] / 1e6:,.0f} MB  {speed} documents/s"
        done = min(values["bytes"] + self._skipped_bytes, self._total_bytes)
        left = (self._total_bytes - done) * seconds / max(values["bytes"], 1)
        pieces = self._pieces / max(done, 1) * self._total_bytes
        left += pieces * self._copies * SECONDS_PER_PIECE / self._num_workers
        share = done / self._total_bytes
        return f"reading  {_bar(share)}  {speed} documents/s  ETA {_clock(left)}"

    def _writing(self, now):
        done, total, reused = self._shards
        seconds = max(now - self._started, 1e-3)
        records = self._values()["records"] - self._at_start.get("records", 0)
        written = (done - reused) / max(total - reused, 1)
        if written:
            left = seconds * (1 - written) / written
        else:
            left = self._pieces * self._copies * SECONDS_PER_PIECE / self._num_workers
        note = f"  ({reused} re-used)" if reused else ""
        return (
            f"writing  {_bar(done / total)}  {done}/{total} shards{note}  "
            f"{records / seconds:,.0f} records/s  ETA {_clock(max(left, 0))}"
        )


def _bar(share):
    filled = int(share * _WIDTH)
    return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {share:4.0%}"


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
