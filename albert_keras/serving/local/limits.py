"""How much one client may ask of a local server, and how that is counted."""

import collections
import math
import re
import time
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError

# A string to its end, or to that of the body where it has none.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_SIGNS = np.zeros(256, np.int8)
_SIGNS[list(b"[{")], _SIGNS[list(b"]}")] = 1, -1


class Limits(NamedTuple):
    """What a local server takes; more is refused before anything is parsed.

    Attributes:
        body_bytes: int. Of a request.
        json_depth: int. Lists and objects within each other.
        path_bytes: int. Of an address behind the host.
        requests_per_second: float. Of one client address, after the first `burst`.
        burst: int. Requests of one address at once.
        connections: int. Open at the same time, of all clients.
        computed_at_once: int. Requests given to TensorFlow at the same time; others wait.
        waiting_seconds: float. So long at most.
        receiving_seconds: float. In which the head of a request should have come, and then its
            body.
        rows: int. Texts of one request: memory grows with them.
        answer_values: int. Numbers and strings of one answer.
    """

    body_bytes: int = 1 << 20
    json_depth: int = 32
    path_bytes: int = 2048
    requests_per_second: float = 50.0
    burst: int = 500  # the page is about 20 files, and `serve-check` asks about 300 times
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
                raise InputError(f"`{name}` should be positive. Received: {value}.")
        return self


def is_too_deep(body, depth):
    """Tells whether JSON has lists and objects nested deeper than so, without parsing it.

    What comes after a mistake in the JSON counts as well; no parser gets that far.

    Args:
        body: bytes.
        depth: int.
    """
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    if len(brackets) <= depth:
        return False
    depths = np.cumsum(_SIGNS[np.frombuffer(brackets, np.uint8)], dtype=np.int64)
    return bool(depths.max() > depth)


class TokenBuckets:
    """A token bucket for each client address.

    Args:
        per_second: float. Tokens that come back.
        burst: int. Tokens of a full bucket.
        clock: function that returns seconds as a float.
        addresses: int. So many buckets are remembered, of those that asked last.
    """

    def __init__(self, per_second, burst, clock=time.monotonic, addresses=1024):
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._addresses = addresses
        self._buckets = collections.OrderedDict()

    def take(self, address):
        """Takes a token, and returns 0.0; or the seconds until there is one again.

        Args:
            address: str.
        """
        now = self._clock()
        tokens, since = self._buckets.pop(address, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_second)
        taken = tokens >= 1
        self._buckets[address] = (tokens - 1 if taken else tokens, now)
        if len(self._buckets) > self._addresses:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / self._per_second
