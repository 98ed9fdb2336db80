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


def measure_load(url, model, signature, texts, clients, requests, timeout=30.0):
    """Asks a signature from several threads, one text a request, and nothing twice.

    Each client sends one request before the clock starts, so that connections are open and the
    server has seen the signature.

    Args:
        url, model, signature: str. The signature takes texts alone.
        texts: sequence of str. Asked in turn.
        clients: int. Threads.
        requests: int. Of all threads together; at least one per thread is sent.
        timeout: float. Seconds for one request.

    Returns:
        Load.

    Raises:
        InputError: If a text cannot be sent.
    """
    jsonable(list(texts))  # in a thread the error would be lost
    shares = [
        max(requests // clients + (number < requests % clients), 1) for number in range(clients)
    ]
    seconds, failures = [], []
    start_line = threading.Barrier(clients + 1)

    def work(number):
        with RestClient(url, model, timeout=timeout, retries=0) as client:
            for place in range(-1, shares[number]):
                if place == 0:
                    start_line.wait()
                start = time.perf_counter()
                try:
                    client.predict_rows([texts[(number + place) % len(texts)]], signature)
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
