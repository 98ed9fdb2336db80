"""Checks a running model server: whether it answers each signature of a model over REST."""

import http.client
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from typing import Any, NamedTuple

from data_pipeline.errors import InputError, Mistake

#: Proxies of the environment cannot reach a server on this computer.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
#: Number of rows of a request.
_ROWS = 2
#: Values of inputs by their type; a tab, so that models of pairs read two texts.
_VALUES = {"DT_STRING": "a\tb", "DT_BOOL": True}
#: Name of the request that a server must refuse.
_REFUSED = "an unknown signature"


class ServeCheckResult(NamedTuple):
    """Result of a check."""

    url: str
    model: str
    version: int  # the newest one that is AVAILABLE
    answered: tuple[str, ...]  # signatures with the right answer
    faults: dict[str, str]  # signature -> what was wrong with its answer

    @property
    def lines(self) -> list[str]:
        """The result as text."""
        lines = [f"{self.url}, {self.model} version {self.version}"]
        lines.append(f"answered: {', '.join(self.answered) or 'none'}")
        return lines + [f"failed: {name}: {fault}" for name, fault in self.faults.items()]


def serve_check(url: str, model: str, timeout: float = 30.0) -> ServeCheckResult:
    """Sends a server two rows for each signature of a model, and a request that is wrong.

    Args:
        url: Address of its REST interface, such as `http://127.0.0.1:8501`.
        model: Name of the model on the server.
        timeout: Seconds without any data after which a request fails.

    Returns:
        ServeCheckResult: an answer is right if it has a value per row for each output that the
        metadata of the model lists.

    Raises:
        InputError: If the address is not one, the server does not answer, or has no version of the
            model that is loaded.
    """
    if not re.fullmatch(r"https?://[^\s?#]+", url):
        raise InputError(
            f"The address of a server must be like `http://127.0.0.1:8501`. Received: {url}."
        )
    url = url.rstrip("/")
    address = f"{url}/v1/models/{urllib.parse.quote(model, safe='')}"
    states = _ask(address, timeout, "model_version_status")
    ready = [int(one["version"]) for one in states if one["state"] == "AVAILABLE"]
    if not ready:
        raise InputError(f"`{model}` at {url} has no version that answers: {json.dumps(states)}.")
    metadata = _ask(f"{address}/metadata", timeout, "metadata")
    answered, faults = [], {}
    for name, signature in sorted(metadata["signature_def"]["signature_def"].items()):
        if name.startswith("__"):  # __saved_model_init_op cannot be called
            continue
        try:
            fault = _fault_of(address, timeout, name, signature)
        except InputError as error:
            fault = str(error)
        if fault:
            faults[name] = fault
        else:
            answered.append(name)
    body = {"signature_name": _REFUSED, "instances": ["a"]}
    status, _ = _request(f"{address}:predict", timeout, body)
    if not 400 <= status < 500:
        faults[_REFUSED] = f"expected a status from 400 to 499, received {status}"
    return ServeCheckResult(url, model, max(ready), tuple(answered), faults)


def _fault_of(address, timeout, name, signature):
    """Returns what is wrong with the answer of a signature, a SignatureDef in JSON; "" if nothing.

    InputError if it is not answered.
    """
    inputs = {key: _sample(tensor) for key, tensor in signature.get("inputs", {}).items()}
    body = {"signature_name": name, "inputs": inputs}
    outputs = _ask(f"{address}:predict", timeout, "outputs", body)
    expected = sorted(signature.get("outputs", {}))
    if len(expected) == 1:  # a server omits the name of a single output
        outputs = {expected[0]: outputs}
    if not isinstance(outputs, dict) or sorted(outputs) != expected:
        return f"expected the outputs {', '.join(expected)}, received: {str(outputs)[:200]}"
    wrong = [key for key, one in outputs.items() if not isinstance(one, list) or len(one) != _ROWS]
    return f"expected {_ROWS} rows of {', '.join(wrong)}" if wrong else ""


def _sample(tensor):
    """Returns rows of values for an input, a TensorInfo in JSON; free sizes become 2."""
    sizes = [int(size["size"]) for size in tensor["tensor_shape"].get("dim", [])]
    value: Any = _VALUES.get(tensor["dtype"], 1)
    for size in reversed(sizes[1:]):
        value = [value] * (2 if size < 0 else size)
    return [value] * _ROWS


def _ask(address, timeout, key, body=None):
    """Returns the value of a key of an answer; InputError if the server refuses the request."""
    status, content = _request(address, timeout, body)
    text = content.decode(errors="replace")
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if status == HTTPStatus.OK and isinstance(answer, dict) and key in answer:
        return answer[key]
    message = " ".join(text[:200].split()) or "an empty answer"
    raise InputError(f"`{address}` answered HTTP {status}: {message}.")


def _request(address, timeout, body):
    """Returns status and content of the answer to a request; InputError if there is none."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, content, {"Content-Type": "application/json"})
    try:
        with _OPENER.open(request, timeout=timeout) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.status, error.read()
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        message = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
        raise InputError(f"`{address}` gave no answer: {message}.", Mistake.NO_ANSWER) from error
