"""Does a server answer as it should, and how fast? Golden cases first, then a load."""

import logging
from typing import NamedTuple

from albert_keras.serving.check.golden_cases import GOLDEN_CASES, applies, fill, judge, names_of
from albert_keras.serving.check.grpc_cases import GRPC_CASES, ask
from albert_keras.serving.check.load_measurement import Load, measure_load
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
        url: str.
        model: str.
        version: int. The one that answered.
        cases: tuple of CaseResult.
        load: Load or None. None where no load was asked for or no signature takes text.
        signature: str. What was asked under load.
    """

    url: str
    model: str
    version: int
    cases: tuple[CaseResult, ...]
    load: Load | None
    signature: str

    @property
    def faults(self):
        """tuple of CaseResult. Those that were answered otherwise."""
        return tuple(case for case in self.cases if case.fault)

    @property
    def ok(self):
        """bool. Whether all answers were right, and none was missing under load."""
        return not self.faults and (self.load is None or not self.load.failures)

    @property
    def lines(self):
        """list of str. For people."""
        asked = [case for case in self.cases if not case.needs]
        missing = sorted({case.needs for case in self.cases if case.needs})
        lines = [f"{self.url}, {self.model} version {self.version}"]
        right = len(asked) - len(self.faults)
        lines.append(f"golden cases: {right} of {len(asked)} as they should be")
        if missing:
            count = len(self.cases) - len(asked)
            lines.append(f"not asked: {count}, as the model has no {', '.join(missing)}")
        lines += [f"wrong: {case.name}: {case.fault}" for case in self.faults]
        if self.load is not None:
            load = self.load
            lines.append(
                f"{load.requests} requests to {self.signature} from {load.clients} clients: "
                f"{load.throughput:.1f} a second, {load.failures} failed"
            )
            if load.latencies:
                names = {"50": "median", "90": "90 %", "99": "99 %", "100": "slowest"}
                shown = (f"{names[key]} {value:.1f} ms" for key, value in load.latencies.items())
                lines.append("latency: " + ", ".join(shown))
            if load.first_failure:
                lines.append(f"first failure: {load.first_failure}")
        return lines


def serve_check(
    url,
    model,
    clients=4,
    requests=200,
    texts=TEXTS,
    timeout=30.0,
    features=("text",),
    grpc_target=None,
):
    """Asks a server all golden cases that its model can answer, then measures it under load.

    Ask the server itself: a proxy before it refuses some of the cases with answers of its own.

    Args:
        url: str. Address of its REST interface, such as `http://127.0.0.1:8501`.
        model: str. Name of the model there.
        clients: int. Threads that ask at the same time.
        requests: int. How many requests all of them send, one text each; 0 measures nothing.
        texts: sequence of str. What they ask in turn.
        timeout: float. Seconds for one request.
        features: iterable of str. Those of a `tf.Example` that classify and regress want.
        grpc_target: str or None. Address of the gRPC interface of the same server, such as
            `127.0.0.1:8500`, to ask that, too.

    Returns:
        ServeCheckResult.

    Raises:
        ServingError: If the server does not answer, or has no such model.
        InputError: If a number cannot be.
    """
    if clients < 1 or requests < 0:
        raise InputError(
            "`clients` should be 1 or more and `requests` 0 or more. "
            f"Received: {clients} and {requests}."
        )
    texts = tuple(texts)
    if not texts:
        raise InputError("`texts` should hold at least one text.")
    with RestClient(url, model, timeout=timeout) as client:
        ready = [one.version for one in client.status() if one.state == "AVAILABLE"]
        if not ready:
            states = ", ".join(
                " ".join(filter(None, (f"version {one.version} is {one.state}", one.error)))
                for one in client.status()
            )
            raise InputError(f"`{model}` at {url} answers nothing yet: {states}.")
        names = names_of(client.metadata(), features)
    version = max(ready)
    cases = list(_ask_rest(url, model, version, names, timeout))
    if grpc_target is not None:
        cases += _ask_grpc(grpc_target, model, names, timeout)
    load = None
    if requests and names.text:
        load = measure_load(url, model, names.text, texts, clients, requests, timeout)
    elif requests:
        logger.warning("no signature of `%s` takes text alone; nothing is measured", model)
    return ServeCheckResult(url.rstrip("/"), model, version, tuple(cases), load, names.text)


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
