"""The limits of a local server, and how requests are counted against them."""

import collections
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from data_pipeline.errors import InputError


class Limits(NamedTuple):
    """Limits of a local server."""

    body_bytes: int = 1 << 20
    json_depth: int = 32  # nesting of lists and objects in a body
    path_bytes: int = 2048  # path and query of an address
    head_bytes: int = 16 << 10  # request line and headers
    requests_per_second: float = 50.0  # of one client address, after the first `burst`
    burst: int = 500  # the page has about 20 files, and `serve-check` sends about 300 requests
    connections: int = 128  # open ones of all clients
    #: How long a connection may wait for its client before it must make room for a new one, if
    #: there are too many.
    yielding_seconds: float = 1.0
    computed_at_once: int = 2  # requests in TensorFlow; others wait
    computing_seconds: float = 120.0  # of TensorFlow for each text of a request, and for loading
    #: How long a request waits for TensorFlow, and how long a client may take to read an answer.
    waiting_seconds: float = 30.0
    #: How long a client may take to send the head of a request, and then its body.
    receiving_seconds: float = 10.0
    draining_seconds: float = 10.0  # for the answers in progress when the server is stopped
    rows: int = 64  # texts of one request; memory grows with them
    answer_values: int = 1 << 21  # numbers and strings of one answer

    def check(self):
        """Returns the limits; raises InputError if one is not positive."""
        for name, value in self._asdict().items():
            if not 0 < value < math.inf:
                raise InputError(f"`{name}` must be positive. Received: {value}.")
        return self


class TokenBuckets:
    """Limits the rate of requests by a token bucket for each client address.

    Args:
        per_second: Rate at which tokens are added to a bucket.
        burst: Number of tokens in a full bucket.
        clock: Returns seconds.
        addresses: Number of buckets to keep, for the addresses with the latest requests.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        addresses: int = 1024,
    ):
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._addresses = addresses
        self._buckets = collections.OrderedDict()

    def take(self, address: str) -> float:
        """Takes a token for an address; returns the seconds to wait for one, or 0.0."""
        now = self._clock()
        tokens, since = self._buckets.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_second)
        taken = tokens >= 1
        self._buckets[address] = (tokens - 1 if taken else tokens, now)
        if len(self._buckets) > self._addresses:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / self._per_second
