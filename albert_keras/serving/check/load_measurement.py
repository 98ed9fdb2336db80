"""Throughput and latency of a server that several clients call at the same time."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import Signature, to_json_value


class Load(NamedTuple):
    """Result of a load measurement."""

    clients: int  # threads, each of which sent its next request when it had received an answer
    requests: int  # of all clients
    failures: int  # requests without an answer or with an error
    first_failure: str  # its message, "" if there was none
    seconds: float  # from the first request to the last answer
    #: Percentile ("50", "90", "99" and "100") -> milliseconds, of the successful requests; empty if
    #: there were none.
    latencies: dict[str, float]

    @property
    def throughput(self) -> float:
        """Successful requests per second."""
        return (self.requests - self.failures) / self.seconds


def rows_of(signature: Signature, texts: Sequence[str]) -> list[dict]:
    """Returns rows for a signature whose inputs are strings of rank 1 or 2.

    A row is a dict of input -> text, or a list of two texts if the rank is 2. The inputs of a row
    get different texts.

    Raises:
        InputError: If a text cannot be sent.
    """
    to_json_value(list(texts))  # in the thread of a client the error would be lost

    def value(shape, position):
        text, next_text = texts[position % len(texts)], texts[(position + 1) % len(texts)]
        return [text, next_text] if len(shape) == 2 else text

    inputs = list(signature.inputs.items())
    return [
        {name: value(shape, row + number) for number, (name, (_, shape)) in enumerate(inputs)}
        for row in range(len(texts))
    ]


def measure_load(
    connect: Callable,
    send: Callable,
    rows: list[dict],
    clients: int,
    requests: int,
) -> Load:
    """Measures a server that several clients call, one row per request.

    Each client sends one request before the clock starts, so that connections are open and the
    server has run the signature.

    Args:
        connect: Returns a client without retries.
        send: Called with a client and a row. Sends one request; raises ServingError if it fails.
        rows: Rows to send in order, repeatedly, see `rows_of`.
        clients: Number of threads, each with a client.
        requests: Number of requests of all threads; each thread sends at least one.
    """
    counts = [
        max(requests // clients + (number < requests % clients), 1) for number in range(clients)
    ]
    seconds, failures = [], []
    start_line = threading.Barrier(clients + 1)
    connections = [connect() for _ in range(clients)]

    def work(number):
        with connections[number] as client:
            for request in range(-1, counts[number]):  # -1 is the one before the clock starts
                if request == 0:
                    start_line.wait()
                start = time.perf_counter()
                failure = None
                try:
                    send(client, rows[(number + request) % len(rows)])
                except ServingError as error:
                    failure = str(error)
                if request >= 0 and failure:
                    failures.append(failure)
                elif request >= 0:
                    seconds.append(time.perf_counter() - start)

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    start_line.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    total = time.perf_counter() - start
    latencies = {}
    if seconds:
        latencies = {str(q): float(np.percentile(seconds, q)) * 1000 for q in (50, 90, 99, 100)}
    return Load(clients, sum(counts), len(failures), next(iter(failures), ""), total, latencies)
