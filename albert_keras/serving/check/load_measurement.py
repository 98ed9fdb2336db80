"""How fast a server answers several clients at once."""

import threading
import time
from typing import NamedTuple

import numpy as np

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.json_values import jsonable
from albert_keras.serving.client.rest_client import RestClient


class Load(NamedTuple):
    """Answers under load.

    Attributes:
        clients: int. Threads that asked, each its next request when it had its answer.
        requests: int. All of them together.
        failures: int. Of these, without an answer or with another status than 200.
        first_failure: str. What the first of them said, empty without one.
        seconds: float. From the first request to the last answer.
        latencies: dict of "50", "90", "99" and "100" (the slowest) -> milliseconds, of those
            that succeeded; empty where none did.
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
    """Makes rows for a signature out of texts.

    Args:
        signature: Signature. Its inputs strings, of rank 1 or 2.
        texts: sequence of str.

    Returns:
        list of dict of input -> text, or a list of two texts where the rank is 2. The inputs of a
        row have different texts.

    Raises:
        InputError: If a text cannot be sent.
    """
    jsonable(list(texts))  # in the thread of a client the error would be lost
    rows = []
    for number in range(len(texts)):
        row, place = {}, number
        for name, (_, shape) in signature.inputs.items():
            row[name] = texts[place % len(texts)]
            if len(shape) == 2:
                row[name] = [row[name], texts[(place + 1) % len(texts)]]
            place += 1
        rows.append(row)
    return rows


def measure_rest_load(url, model, signature, rows, clients, requests, timeout=30.0):
    """Asks a signature over REST from several threads, one row a request; see `measure_grpc_load`.

    Args:
        url: str. Address of the REST interface.
    """

    def connect():
        client = RestClient(url, model, timeout=timeout, retries=0)
        return client, lambda row: client.predict_rows([row], signature)

    return _measure(connect, rows, clients, requests)


def measure_grpc_load(target, model, signature, rows, clients, requests, timeout=30.0):
    """Asks a signature over gRPC from several threads, one row a request, and nothing twice.

    Each client sends one request before the clock starts, so that connections are open and the
    server has seen the signature.

    Args:
        target: str. Address of the gRPC interface.
        model, signature: str.
        rows: list of dict of input -> value of one row, as from `rows_of`. Asked in turn.
        clients: int. Threads.
        requests: int. Of all threads together; at least one per thread is sent.
        timeout: float. Seconds for one request.

    Returns:
        Load.
    """
    from albert_keras.serving.client.grpc_client import GrpcClient

    def connect():
        client = GrpcClient(target, model, timeout=timeout, retries=0)
        return client, lambda row: client.predict(signature, **{key: [row[key]] for key in row})

    return _measure(connect, rows, clients, requests)


def _measure(connect, rows, clients, requests):
    """Returns the Load of threads with a client each.

    Args:
        connect: function. Returns a client and a function that asks it a row.
        rows, clients, requests: As of `measure_grpc_load`.
    """
    shares = [
        max(requests // clients + (number < requests % clients), 1) for number in range(clients)
    ]
    seconds, failures = [], []
    start_line = threading.Barrier(clients + 1)

    connections = [connect() for _ in range(clients)]

    def work(number):
        client, ask = connections[number]
        with client:
            for place in range(-1, shares[number]):
                if place == 0:
                    start_line.wait()
                start = time.perf_counter()
                try:
                    ask(rows[(number + place) % len(rows)])
                except ServingError as error:
                    if place >= 0:
                        failures.append(str(error))
                else:
                    if place >= 0:
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
    marks = (50, 90, 99, 100)
    found = np.percentile(seconds, marks) * 1000 if seconds else ()
    latencies = {str(mark): float(value) for mark, value in zip(marks, found, strict=False)}
    first = failures[0] if failures else ""
    return Load(clients, sum(shares), len(failures), first, total, latencies)
