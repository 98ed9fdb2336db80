"""Checks a running model server by golden cases: requests over REST, and the form of the answers.

The cases in `golden_cases.yaml` follow the rules of `tensorflow_model_server` 2.15. None of them
harms a server: JSON that is nested so deeply that it ends the process is not among them.
"""

import json
from collections import Counter
from http import HTTPStatus
from importlib.resources import files
from typing import NamedTuple

import yaml

from albert_keras.serving.layout import EXAMPLE_FEATURES
from albert_keras.serving.rest_client import RestClient, ServingError, Signature, request
from data_pipeline.errors import InputError


class GoldenCase(NamedTuple):
    """A request and the expected answer.

    In `path` and `body`, `{model}`, `{version}` and the keys of `names_of` in braces are replaced
    by names of the model that is checked.
    """

    name: str  # what the case shows
    status: int
    key: str  # of the answer: "predictions", "outputs", "error" and so on
    method: str = "POST"
    path: str = ":predict"  # relative to `/v1/models/{model}`, unless it starts with `/v1/`
    body: str | None = None
    #: Length of the value; of each output, if outputs have names.
    rows: int | None = None
    #: A key of `names_of` that the model must have, "default" if that must be the default
    #: signature; "" for every model.
    needs: str = "text"


class CaseResult(NamedTuple):
    """Result of a golden case."""

    name: str
    needs: str  # what model or server lacks, if the case was skipped; else empty
    fault: str  # what was wrong with the answer; empty if nothing was


class ServeCheckResult(NamedTuple):
    """Result of a check."""

    url: str
    model: str
    version: int  # the newest one that is AVAILABLE
    cases: tuple[CaseResult, ...]
    not_served: tuple[str, ...] = ()  # of `needs`, the methods that the server does not have

    @property
    def faults(self) -> tuple[CaseResult, ...]:
        """Cases with a wrong answer."""
        return tuple(case for case in self.cases if case.fault)

    @property
    def ok(self) -> bool:
        """Whether all answers were right."""
        return not self.faults

    @property
    def lines(self) -> list[str]:
        """The result as text."""
        run = [case for case in self.cases if not case.needs]
        missing = Counter(case.needs for case in self.cases if case.needs)
        lines = [
            f"{self.url}, {self.model} version {self.version}",
            f"golden cases: {len(run) - len(self.faults)} of {len(run)} passed",
        ]
        for who, is_served in (("server", False), ("model", True)):
            names = sorted(one for one in missing if (one not in self.not_served) == is_served)
            if names:
                count = sum(missing[name] for name in names)
                lines.append(f"skipped: {count}, because the {who} has no {', '.join(names)}")
        return lines + [f"failed: {case.name}: {case.fault}" for case in self.faults]


GOLDEN_CASES = tuple(
    GoldenCase(**case)
    for case in yaml.safe_load(
        files("albert_keras.serving").joinpath("golden_cases.yaml").read_text(encoding="utf-8")
    )
)


def serve_check(url: str, model: str, timeout: float = 30.0) -> ServeCheckResult:
    """Sends a server all golden cases that apply to its model.

    Check the server itself: a proxy in front of it answers some of the cases differently.

    Args:
        url: Address of its REST interface, such as `http://127.0.0.1:8501`.
        model: Name of the model on the server.
        timeout: Seconds for one request.

    Raises:
        ServingError: If the server does not answer, or has no such model.
        InputError: If an argument is invalid, or no version is loaded.
    """
    client = RestClient(url, model, timeout=timeout)
    states = client.status()
    ready = [one.version for one in states if one.state == "AVAILABLE"]
    if not ready:
        listed = ", ".join(
            f"version {one.version} is {one.state} {one.error}".rstrip() for one in states
        )
        raise InputError(f"`{model}` at {client.url} has no version that answers: {listed}.")
    version, names = max(ready), names_of(client.metadata())
    # Our local server lists no signatures for the methods that it does not have.
    not_served = tuple(
        method
        for method in ("classify", "regress")
        if method not in names
        and request("POST", f"{client.url}/v1/models/{model}:{method}", b"{}")[0]
        == HTTPStatus.NOT_IMPLEMENTED
    )
    results = []
    for case in GOLDEN_CASES:
        called = case.path.rpartition(":")[2]
        if called in not_served or not applies(case, names):
            lacking = called if called in not_served else case.needs
            results.append(CaseResult(case.name, lacking, ""))
            continue
        path, body = fill(case, model, version, names)
        try:
            fault = judge(case, *request(case.method, client.url + path, body, timeout))
        except ServingError as error:
            fault = str(error)
        results.append(CaseResult(case.name, "", fault))
    return ServeCheckResult(client.url, model, version, tuple(results), not_served)


def names_of(signatures: dict[str, Signature]) -> dict[str, str]:
    """Returns the names that cases need from a model, by its signatures.

    Returns:
        dict. The following keys, as far as the model has them:
        text: Signature with one string input of rank 1, `serving_default` if it is one; `input`:
            name of its input.
        single: The same with only one output; `single_input`: its input.
        pair: Signature with two string inputs of rank 1, `first` and `second`.
        classify, regress: Signatures with these methods; `example`: their features as JSON, which
            metadata does not list.
    """
    names = {"example": json.dumps(dict.fromkeys(EXAMPLE_FEATURES, "a"))}
    for name, signature in sorted(signatures.items(), key=lambda one: one[0] != "serving_default"):
        inputs = sorted(signature.inputs)
        takes_texts = all(one == ("DT_STRING", (-1,)) for one in signature.inputs.values())
        if signature.method in ("classify", "regress"):
            names.setdefault(signature.method, name)
        elif takes_texts and len(inputs) == 2 and "pair" not in names:
            names |= {"pair": name, "first": inputs[0], "second": inputs[1]}
        elif takes_texts and len(inputs) == 1:
            if "text" not in names:
                names |= {"text": name, "input": inputs[0]}
            if len(signature.outputs) == 1 and "single" not in names:
                names |= {"single": name, "single_input": inputs[0]}
    return names


def fill(
    case: GoldenCase, model: str, version: int, names: dict[str, str]
) -> tuple[str, bytes | None]:
    """Returns path and body of a case for an AVAILABLE version of a model; see `names_of`."""
    path = case.path if case.path.startswith("/v1/") else "/v1/models/{model}" + case.path
    body = case.body
    for name, value in {"model": model, "version": str(version), **names}.items():
        path = path.replace("{" + name + "}", value)
        body = body and body.replace("{" + name + "}", value)
    # A lone surrogate stands for a byte that is not UTF-8.
    return path, None if body is None else body.encode(errors="surrogateescape")


def applies(case: GoldenCase, names: dict[str, str]) -> bool:
    """Returns whether the model has what a case needs."""
    if case.needs == "default":
        return names.get("text") == "serving_default"
    return not case.needs or case.needs in names


def judge(case: GoldenCase, status: int, body: bytes) -> str:
    """Returns what is wrong with an answer, "" if nothing is."""
    shown = body[:200].decode(errors="replace")
    if status != case.status:
        return f"expected status {case.status}, received {status}: {shown}"
    try:
        answer = json.loads(body.decode(errors="replace"))
    except ValueError:
        return f"expected JSON, received: {shown}"
    if not isinstance(answer, dict) or case.key not in answer:
        return f"expected the key `{case.key}`, received: {shown}"
    value = answer[case.key]
    if case.key == "error" and not (isinstance(value, str) and value):
        return f"expected a message under `error`, received: {shown}"
    if case.rows is not None:
        parts = value.values() if isinstance(value, dict) else [value]
        lengths = {len(part) if isinstance(part, list) else None for part in parts}
        if lengths != {case.rows}:
            return f"expected {case.rows} rows, received {lengths}: {shown}"
    return ""
