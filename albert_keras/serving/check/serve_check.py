"""Does a server answer as it should, and how fast? Golden cases first, then a load."""

import logging
from typing import NamedTuple

from albert_keras.serving.check.golden_cases import (
    FEATURES,
    GOLDEN_CASES,
    applies,
    fill,
    judge,
    names_of,
)
from albert_keras.serving.check.grpc_cases import GRPC_CASES, ask
from albert_keras.serving.check.load_measurement import (
    Load,
    measure_grpc_load,
    measure_rest_load,
    rows_of,
)
from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.http_connection import HttpConnection
from albert_keras.serving.client.rest_client import RestClient
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: What is asked under load, where the user gives nothing: short, middling and with a mask.
TEXTS = (
    "The [MASK] left the harbour before sunrise.",
    "Rain had washed the chalk marks from the wall, and nobody in the village wondered why.",
    "Seven geese crossed the lake.",
)


class CaseResult(NamedTuple):
    """A golden case and what became of it.

    Attributes:
        name: str.
        needs: str. What the model lacks, where the case was not asked; else empty.
        fault: str. What was wrong, empty where nothing was.
    """

    name: str
    needs: str
    fault: str


class ServeCheckResult(NamedTuple):
    """What a check found.

    Attributes:
        url, grpc_target: str or None. The addresses that were asked.
        model: str.
        version: int. The one that answered.
        cases: tuple of CaseResult.
        load, grpc_load: Load or None. Over REST and over gRPC; None where none was asked for, or
            where no signature takes text.
        signature: str. What was asked under load, "" where nothing was.
    """

    url: str | None
    grpc_target: str | None
    model: str
    version: int
    cases: tuple[CaseResult, ...]
    load: Load | None
    grpc_load: Load | None
    signature: str

    @property
    def faults(self):
        """tuple of CaseResult. Those that were answered otherwise."""
        return tuple(case for case in self.cases if case.fault)

    @property
    def ok(self):
        """bool. Whether all answers were right, and none was missing under load."""
        loads = (load for load in (self.load, self.grpc_load) if load is not None)
        return not self.faults and not any(load.failures for load in loads)

    @property
    def lines(self):
        """list of str. For people."""
        asked = [case for case in self.cases if not case.needs]
        missing = sorted({case.needs for case in self.cases if case.needs})
        address = ", ".join(filter(None, (self.url, self.grpc_target)))
        lines = [f"{address}, {self.model} version {self.version}"]
        right = len(asked) - len(self.faults)
        lines.append(f"golden cases: {right} of {len(asked)} as they should be")
        if missing:
            count = len(self.cases) - len(asked)
            lines.append(f"not asked: {count}, as the model has no {', '.join(missing)}")
        lines += [f"wrong: {case.name}: {case.fault}" for case in self.faults]
        for interface, load in (("REST", self.load), ("gRPC", self.grpc_load)):
            if load is not None:
                lines += _lines_of(load, f"{self.signature} over {interface}")
        return lines

    def to_dict(self):
        """Returns all of it as dicts and lists, with `ok` and `throughput` (a second)."""
        values = self._asdict() | {"ok": self.ok, "cases": [one._asdict() for one in self.cases]}
        for key in ("load", "grpc_load"):
            if values[key] is not None:
                load = values[key]
                values[key] = load._asdict() | {"throughput": load.throughput}
        return values


def serve_check(
    url,
    model,
    clients=4,
    requests=200,
    texts=TEXTS,
    timeout=30.0,
    features=FEATURES,
    grpc_target=None,
    label=None,
):
    """Asks a server all golden cases that its model can answer, then measures it under load.

    Ask the server itself: a proxy before it refuses some of the cases with answers of its own.

    Args:
        url: str or None. Address of its REST interface, such as `http://127.0.0.1:8501`.
        model: str. Name of the model there.
        clients: int. Threads that ask at the same time.
        requests: int. How many requests all of them send, one row each, over each interface; 0
            measures nothing.
        texts: sequence of str. What they ask in turn.
        timeout: float. Seconds for one request.
        features: iterable of str. Those of a `tf.Example` that classify and regress want.
        grpc_target: str or None. Address of the gRPC interface of the same server, such as
            `127.0.0.1:8500`; without `url` this alone is asked.
        label: str or None. A label of a loaded version, to ask that as well.

    Returns:
        ServeCheckResult.

    Raises:
        ServingError: If the server does not answer, or has no such model.
        InputError: If a number or an address cannot be, or no version is loaded.
    """
    if clients < 1 or requests < 0:
        raise InputError(
            "`clients` should be 1 or more and `requests` 0 or more. "
            f"Received: {clients} and {requests}."
        )
    texts = tuple(texts)
    if not texts:
        raise InputError("`texts` should hold at least one text.")
    if url is None and grpc_target is None:
        raise InputError("Give the address of the REST interface, of the gRPC interface, or both.")
    url = url and url.rstrip("/")
    version, signatures = None, None
    if url is not None:
        with RestClient(url, model, timeout=timeout) as client:
            version, signatures = _look(client, url)
    if grpc_target is not None:
        from albert_keras.serving.client.grpc_client import GrpcClient  # loads TensorFlow

        with GrpcClient(grpc_target, model, timeout=timeout) as client:
            found = _look(client, grpc_target)
        version, signatures = (version, signatures) if url else found
    names, asked = names_of(signatures, features, label), _asked_under_load(signatures)
    rows = rows_of(signatures[asked], texts) if asked else []

    cases, load, grpc_load = [], None, None
    if url is not None:
        cases += _ask_rest(url, model, version, names, timeout)
    if grpc_target is not None:
        cases += _ask_grpc(grpc_target, model, names, timeout)
    if requests and not asked:
        logger.warning("no signature of `%s` takes text alone; nothing is measured", model)
    elif requests:
        loads = (model, asked, rows, clients, requests, timeout)
        load = None if url is None else measure_rest_load(url, *loads)
        grpc_load = None if grpc_target is None else measure_grpc_load(grpc_target, *loads)
    return ServeCheckResult(
        url, grpc_target, model, version, tuple(cases), load, grpc_load, asked if requests else ""
    )


def _look(client, address):
    """Returns the newest version that is AVAILABLE, and the signatures of the model."""
    states = client.status()
    ready = [one.version for one in states if one.state == "AVAILABLE"]
    if not ready:
        told = ", ".join(
            " ".join(filter(None, (f"version {one.version} is {one.state}", one.error)))
            for one in states
        )
        raise InputError(f"`{client.model}` at {address} answers nothing yet: {told}.")
    return max(ready), client.metadata()


def _asked_under_load(signatures):
    """Returns the first signature that takes texts and lists of texts alone, "" if none does."""
    for name, signature in sorted(signatures.items(), key=lambda one: one[0] != "serving_default"):
        kinds = {(dtype, len(shape or ())) for dtype, shape in signature.inputs.values()}
        if (
            signature.method == "predict"
            and kinds
            and kinds <= {("DT_STRING", 1), ("DT_STRING", 2)}
        ):
            return name
    return ""


def _lines_of(load, what):
    yield (
        f"{load.requests} requests to {what} from {load.clients} clients: "
        f"{load.throughput:.1f} a second, {load.failures} failed"
    )
    if load.latencies:
        names = {"50": "median", "90": "90 %", "99": "99 %", "100": "slowest"}
        shown = (f"{names[key]} {value:.1f} ms" for key, value in load.latencies.items())
        yield "latency: " + ", ".join(shown)
    if load.first_failure:
        yield f"first failure: {load.first_failure}"


def _ask_rest(url, model, version, names, timeout):
    """Yields a CaseResult for each golden case."""
    connection = HttpConnection(url, timeout)
    for case in GOLDEN_CASES:
        if not applies(case, names):
            yield CaseResult(case.name, case.needs, "")
            continue
        path, body = fill(case, model, version, names)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            fault = judge(case, *connection.request(case.method, path, body, headers))
        except ServingError as error:
            fault = str(error)
        yield CaseResult(case.name, "", fault)
    connection.close()


def _ask_grpc(target, model, names, timeout):
    """Yields a CaseResult for each case of gRPC."""
    for case in GRPC_CASES:
        if not applies(case, names):
            yield CaseResult(case.name, case.needs, "")
        else:
            yield CaseResult(case.name, "", ask(case, target, model, names, timeout))
