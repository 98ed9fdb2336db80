"""The limits of a local server, and how requests and JSON are counted against them."""

import collections
import math
import re
import time
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError

# A string up to its end, or up to the end of the body if it has none.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


class Limits(NamedTuple):
    """Limits of a local server.

    Attributes:
        body_bytes: int. Size of the body of a request.
        json_depth: int. Nesting of lists and objects in the body.
        path_bytes: int. Size of the path and the query of an address.
        requests_per_second: float. Rate of requests of one client address, after the first `burst`.
        burst: int. Number of requests of one client address at once.
        connections: int. Number of open connections of all clients.
        computed_at_once: int. Number of requests that TensorFlow computes at once; others wait.
        waiting_seconds: float. How long a request waits for TensorFlow, and how long a client may
            take to read an answer.
        receiving_seconds: float. How long a client may take to send the head of a request, and then
            its body.
        rows: int. Texts of one request; memory grows with them.
        answer_values: int. Numbers and strings of one answer.
    """

    body_bytes: int = 1 << 20
    json_depth: int = 32
    path_bytes: int = 2048
    requests_per_second: float = 50.0
    burst: int = 500  # the page has about 20 files, and `serve-check` sends about 300 requests
    connections: int = 128
    computed_at_once: int = 2
    waiting_seconds: float = 30.0
    receiving_seconds: float = 10.0
    rows: int = 64
    answer_values: int = 1 << 21

    def check(self):
        """Returns the limits; raises InputError if one is not positive."""
        for name, value in self._asdict().items():
            if not 0 < value < math.inf:
                raise InputError(f"`{name}` must be positive. Received: {value}.")
        return self


def is_too_deep(body, depth):
    """Returns whether lists and objects in JSON are nested deeper than `depth`.

    The JSON is not parsed, and brackets after a mistake in it are counted as well.

    Args:
        body: bytes.
        depth: int.
    """
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    if len(brackets) <= depth:
        return False
    opening = np.isin(np.frombuffer(brackets, np.uint8), list(b"[{"))
    return bool(np.cumsum(np.where(opening, 1, -1)).max() > depth)


class TokenBuckets:
    """Limits the rate of requests by a token bucket for each client address.

    Args:
        per_second: float. Rate at which tokens are added to a bucket.
        burst: int. Number of tokens in a full bucket.
        clock: function that returns seconds as a float.
        addresses: int. Number of buckets to keep, those of the latest requests.
    """

    def __init__(self, per_second, burst, clock=time.monotonic, addresses=1024):
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._addresses = addresses
        self._buckets = collections.OrderedDict()

    def take(self, address):
        """Takes a token for an address (str); returns the seconds to wait for one, or 0.0."""
        now = self._clock()
        tokens, since = self._buckets.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_second)
        taken = tokens >= 1
        self._buckets[address] = (tokens - 1 if taken else tokens, now)
        if len(self._buckets) > self._addresses:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / self._per_second
