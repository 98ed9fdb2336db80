"""Throughput and latency of a server that several clients call at the same time."""

import threading
import time
from typing import NamedTuple

import numpy as np

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import to_json_value


class Load(NamedTuple):
    """Result of a load measurement.

    Attributes:
        clients: int. Threads, each of which sent its next request when it had received an answer.
        requests: int. Number of requests of all clients.
        failures: int. Number of requests without an answer or with an error.
        first_failure: str. Message of the first failure, "" if there was none.
        seconds: float. From the first request to the last answer.
        latencies: dict of percentile ("50", "90", "99" and "100") -> milliseconds, of the
            successful requests; empty if there were none.
    """

    clients: int
    requests: int
    failures: int
    first_failure: str
    seconds: float
    latencies: dict

    @property
    def throughput(self):
        """float. Successful requests per second."""
        return (self.requests - self.failures) / self.seconds


def rows_of(signature, texts):
    """Returns rows for a signature, made of texts.

    Args:
        signature: Signature. Its inputs are strings of rank 1 or 2.
        texts: sequence of str.

    Returns:
        list of dict of input -> text, or a list of two texts if the rank is 2. The inputs of a row
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


def measure_load(connect, send, rows, clients, requests):
    """Measures a server that several clients call, one row per request.

    Each client sends one request before the clock starts, so that connections are open and the
    server has run the signature.

    Args:
        connect: function. Returns a client without retries, a context manager.
        send: function of a client and a row. Sends one request; raises ServingError if it fails.
        rows: list of dict of input -> value of one row, see `rows_of`. They are sent in order,
            repeatedly.
        clients: int. Number of threads, each with a client.
        requests: int. Number of requests of all threads; each thread sends at least one.

    Returns:
        Load.
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
