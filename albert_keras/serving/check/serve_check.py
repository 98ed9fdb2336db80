"""Checks a running server: golden cases first, then throughput and latency under load."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.serving.check.golden_cases import (
    FEATURES,
    GOLDEN_CASES,
    GRPC_CASES,
    applies,
    check_grpc_case,
    fill,
    judge,
    names_of,
)
from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import (
    HttpConnection,
    RestClient,
    Signature,
    to_json_value,
)
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Default texts for the load: short, of medium length, and with a mask.
TEXTS = (
    "The [MASK] left the harbour before sunrise.",
    "Rain had washed the chalk marks from the wall, and nobody in the village wondered why.",
    "Seven geese crossed the lake.",
)


class CaseResult(NamedTuple):
    """Result of a golden case."""

    name: str
    needs: str  # what the model lacks, if the case was skipped; else empty
    fault: str  # what was wrong with the answer; empty if nothing was


class Load(NamedTuple):
    """Result of a load measurement."""

    clients: int  # threads; each sent its next request when it had received an answer
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


class ServeCheckResult(NamedTuple):
    """Result of a check."""

    url: str | None  # of REST
    grpc_target: str | None
    model: str
    version: int  # the newest one that is AVAILABLE
    cases: tuple[CaseResult, ...]
    load: Load | None  # over REST; None if it was not measured
    grpc_load: Load | None
    signature: str  # the one that was measured, "" if none was

    @property
    def faults(self) -> tuple[CaseResult, ...]:
        """Cases with a wrong answer."""
        return tuple(case for case in self.cases if case.fault)

    @property
    def ok(self) -> bool:
        """Whether all answers were right and no request failed under load."""
        loads = (load for load in (self.load, self.grpc_load) if load is not None)
        return not self.faults and not any(load.failures for load in loads)

    @property
    def lines(self) -> list[str]:
        """The result as text."""
        run = [case for case in self.cases if not case.needs]
        missing = sorted({case.needs for case in self.cases if case.needs})
        address = ", ".join(filter(None, (self.url, self.grpc_target)))
        lines = [
            f"{address}, {self.model} version {self.version}",
            f"golden cases: {len(run) - len(self.faults)} of {len(run)} passed",
        ]
        if missing:
            skipped = f"skipped: {len(self.cases) - len(run)}"
            lines.append(f"{skipped}, because the model has no {', '.join(missing)}")
        lines += [f"failed: {case.name}: {case.fault}" for case in self.faults]
        for interface, load in (("REST", self.load), ("gRPC", self.grpc_load)):
            if load is not None:
                lines += _lines_of(load, f"{self.signature} over {interface}")
        return lines

    def to_dict(self) -> dict:
        """Returns the result as dicts and lists, with `ok` and `throughput` (requests/s)."""
        values = self._asdict() | {"ok": self.ok, "cases": [one._asdict() for one in self.cases]}
        for key in ("load", "grpc_load"):
            if load := values[key]:
                values[key] = load._asdict() | {"throughput": load.throughput}
        return values


def serve_check(
    url: str | None,
    model: str,
    clients: int = 4,
    requests: int = 200,
    texts: Iterable[str] = TEXTS,
    timeout: float = 30.0,
    features: Iterable[str] = FEATURES,
    grpc_target: str | None = None,
    label: str | None = None,
) -> ServeCheckResult:
    """Sends a server all golden cases that apply to its model, then measures it under load.

    Check the server itself: a proxy in front of it answers some of the cases differently.

    Args:
        url: Address of its REST interface, such as `http://127.0.0.1:8501`; None checks only gRPC.
        model: Name of the model on the server.
        clients: Number of threads that send requests at the same time.
        requests: Number of requests of all threads, one row each, over each interface; 0 measures
            nothing.
        texts: Texts of the requests.
        timeout: Seconds for one request.
        features: Features of a `tf.Example` that classify and regress need.
        grpc_target: Address of the gRPC interface of the same server, such as `127.0.0.1:8500`;
            None checks only REST.
        label: A label of a loaded version, to check it as well.

    Raises:
        ServingError: If the server does not answer, or has no such model.
        InputError: If a number or an address is invalid, or no version is loaded.
    """
    if clients < 1 or requests < 0:
        raise InputError(
            "`clients` must be at least 1 and `requests` at least 0. "
            f"Received: {clients} and {requests}."
        )
    texts = tuple(texts)
    if not texts:
        raise InputError("`texts` must contain at least one text. Received: none.")
    if url is None and grpc_target is None:
        raise InputError("Give the address of the REST interface, of the gRPC interface, or both.")
    url = url and url.rstrip("/")

    def connect_rest(retries=0):
        return RestClient(url, model, timeout=timeout, retries=retries)

    def connect_grpc(retries=0):
        from albert_keras.serving.client.grpc_client import GrpcClient  # loads TensorFlow

        return GrpcClient(grpc_target, model, timeout=timeout, retries=retries)

    if grpc_target is not None:
        with connect_grpc(retries=3) as client:
            version, signatures = _newest_version(client, grpc_target)
    if url is not None:
        with connect_rest(retries=3) as client:
            version, signatures = _newest_version(client, url)
    names = names_of(signatures, features, label)
    measured = _text_signature(signatures) if requests else ""
    if requests and not measured:
        logger.warning("No signature of `%s` takes only text, so the load is not measured.", model)
    rows = _rows_of(signatures[measured], texts) if measured else []

    def rest_fault(case):
        path, body = fill(case, model, version, names)
        try:
            with contextlib.closing(HttpConnection(url)) as connection:
                return judge(case, *connection.request(case.method, path, body, timeout))
        except ServingError as error:
            return str(error)

    def grpc_fault(case):
        return check_grpc_case(case, grpc_target, model, names, timeout)

    def send_rest(client, row):
        client.predict_rows([row], measured)

    def send_grpc(client, row):
        client.predict(measured, **{name: [value] for name, value in row.items()})

    cases, load, grpc_load = [], None, None
    if url is not None:
        cases += _run(GOLDEN_CASES, names, rest_fault)
    if grpc_target is not None:
        cases += _run(GRPC_CASES, names, grpc_fault)
    if url is not None and measured:
        load = _measure_load(connect_rest, send_rest, rows, clients, requests)
    if grpc_target is not None and measured:
        grpc_load = _measure_load(connect_grpc, send_grpc, rows, clients, requests)
    return ServeCheckResult(
        url, grpc_target, model, version, tuple(cases), load, grpc_load, measured
    )


def _newest_version(client, address):
    """Returns the newest version that is AVAILABLE, and the signatures of the model."""
    states = client.status()
    ready = [one.version for one in states if one.state == "AVAILABLE"]
    if not ready:
        listed = ", ".join(
            f"version {one.version} is {one.state} {one.error}".rstrip() for one in states
        )
        raise InputError(f"`{client.model}` at {address} has no version that answers: {listed}.")
    return max(ready), client.metadata()


def _text_signature(signatures):
    """Returns the first predict signature whose inputs are all texts or lists of texts, or ""."""
    for name, signature in sorted(signatures.items(), key=lambda one: one[0] != "serving_default"):
        kinds = {(dtype, len(shape or ())) for dtype, shape in signature.inputs.values()}
        if signature.method == "predict" and kinds:
            if kinds <= {("DT_STRING", 1), ("DT_STRING", 2)}:
                return name
    return ""


def _rows_of(signature: Signature, texts: Sequence[str]) -> list[dict]:
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


def _measure_load(
    connect: Callable, send: Callable, rows: list[dict], clients: int, requests: int
) -> Load:
    """Measures a server that several clients call, one row per request.

    Each client has a thread, and sends one request before the clock starts, so that connections are
    open and the server has run the signature. `requests` is their sum over all clients, at least
    one of each. `send` takes a client and a row, and raises ServingError if the request fails.
    """
    counts = [
        max(requests // clients + (number < requests % clients), 1) for number in range(clients)
    ]
    seconds, failures = [], []
    start_line = threading.Barrier(clients + 1)
    connections = [connect() for _ in range(clients)]

    def work(number):
        with connections[number] as client:
            with contextlib.suppress(ServingError):
                send(client, rows[(number - 1) % len(rows)])
            start_line.wait()
            for request in range(counts[number]):
                start = time.perf_counter()
                try:
                    send(client, rows[(number + request) % len(rows)])
                    seconds.append(time.perf_counter() - start)
                except ServingError as error:
                    failures.append(str(error))

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


def _lines_of(load, what):
    yield (
        f"{load.requests} requests to {what} from {load.clients} clients: "
        f"{load.throughput:.1f} per second, {load.failures} failed"
    )
    if load.latencies:
        names = {"50": "median", "90": "90 %", "99": "99 %", "100": "slowest"}
        shown = (f"{names[key]} {value:.1f} ms" for key, value in load.latencies.items())
        yield "latency: " + ", ".join(shown)
    if load.first_failure:
        yield f"first failure: {load.first_failure}"


def _run(cases, names, fault_of):
    """Yields the CaseResult of each case; `fault_of` returns what is wrong with the answer."""
    for case in cases:
        if applies(case, names):
            yield CaseResult(case.name, "", fault_of(case))
        else:
            yield CaseResult(case.name, case.needs, "")
