"""A client for the REST interface of `tensorflow_model_server`; needs only the standard library."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, NamedTuple

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import parse_json

#: Proxies of the environment cannot reach a server on this computer.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class VersionState(NamedTuple):
    """A version of a model on the server."""

    version: int
    state: str  # "START", "LOADING", "AVAILABLE", "UNLOADING" or "END"
    error: str  # why it failed to load; empty if it did not


class Signature(NamedTuple):
    """A signature of a model on the server.

    Inputs and outputs are (dtype, shape), such as ("DT_STRING", (-1,)); the shape is None if the
    rank is unknown.
    """

    method: str  # "predict", "classify" or "regress"
    inputs: dict[str, tuple]
    outputs: dict[str, tuple]


class ServingError(InputError):
    """The server refused the request, failed or did not answer.

    Attributes:
        message: str. The message of the server, or of the network if no server answered.
        http_status: int or None. None if there was no answer.
    """

    def __init__(self, address: str, message: str, http_status: int | None = None):
        self.message, self.http_status = " ".join(message.split()).rstrip("."), http_status
        outcome = f"answered HTTP {http_status}" if http_status else "gave no answer"
        mistakes = () if http_status else (Mistake.NO_ANSWER,)
        super().__init__(f"`{address}` {outcome}: {self.message}.", *mistakes)


class RestClient:
    """A client of one model on a server.

    Args:
        url: str. Address of the server, such as `http://127.0.0.1:8501`.
        model: str. Name of the model on the server.
        version: int or None. None is the newest version.
        timeout: float. Seconds without any data after which a call fails.

    Raises:
        InputError: If an argument is invalid.

    Example:
        client = RestClient("http://127.0.0.1:8501", "books")
        client.predict(text=["The [MASK] left."])["filled_text"]
    """

    def __init__(self, url: str, model: str, version: int | None = None, timeout: float = 30.0):
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise InputError(
                f"`timeout` must be a positive number of seconds. Received: {timeout!r}."
            )
        self.url, self.model, self._timeout = check_url(url), model, timeout
        self._path = f"/v1/models/{urllib.parse.quote(model, safe='')}"
        if version is not None:
            self._path += f"/versions/{version:d}"

    def predict(self, signature: str = "serving_default", **inputs) -> dict[str, list]:
        """Calls a signature with the values of each input.

        Args:
            signature: str. Its name.
            **inputs: A nested list or array [B, ...] per input; strings as str or bytes.

        Returns:
            dict of output -> nested list [B, ...].

        Raises:
            ServingError: If the server refuses the request, fails or does not answer.
        """
        body = {"signature_name": signature, "inputs": to_json_value(inputs)}
        outputs = self._call("POST", ":predict", "outputs", body)
        if isinstance(outputs, dict):
            return outputs
        only = self.metadata()[signature].outputs  # the server omits the name of a single output
        return {next(iter(only)): outputs}

    def status(self) -> list[VersionState]:
        """Returns the versions on the server."""
        entries = self._call("GET", "", "model_version_status")
        return [
            VersionState(int(one["version"]), one["state"], one["status"].get("error_message", ""))
            for one in entries
        ]

    def metadata(self) -> dict[str, Signature]:
        """Returns the signatures of the model."""
        metadata = self._call("GET", "/metadata", "metadata")
        return signatures_from_json(metadata["signature_def"]["signature_def"])

    def _call(self, method, path, key, body=None):
        """Returns the value of a key of the answer."""
        address = self.url + self._path + path
        content = None if body is None else json.dumps(body).encode()
        status, answer = request(method, address, content, self._timeout)
        text = answer.decode(errors="replace")
        try:
            found = parse_json(text)  # accepts NaN and Infinity, which the server writes
        except ValueError:
            found = None
        if status == 200 and isinstance(found, dict) and key in found:
            return found[key]
        message = found.get("error") if isinstance(found, dict) else None
        raise ServingError(address, str(message or text[:200].strip() or "an empty answer"), status)


def request(
    method: str, address: str, body: bytes | None = None, timeout: float = 30.0
) -> tuple[int, bytes]:
    """Sends one HTTP request; returns status and body of the answer, whatever the status.

    Raises:
        ServingError: If there is no answer.
    """
    headers = {} if body is None else {"Content-Type": "application/json"}
    given = urllib.request.Request(address, body, headers, method=method)
    try:
        try:
            response = _opener.open(given, timeout=timeout)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, response.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        message = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
        raise ServingError(address, message) from error


def check_url(url: str) -> str:
    """Returns the address of a server without a `/` at its end; InputError if it is not one."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and not parts.query
        is_valid = is_valid and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InputError(
            f"The address of a server must be like `http://127.0.0.1:8501`. Received: {url}."
        )
    return url.rstrip("/")


def to_json_value(value: Any) -> Any:
    """Returns a value in the form that the server reads from JSON.

    It is nested lists, tuples, dicts and arrays of str, bytes, int, float and bool. Bytes, and
    strings with undecodable bytes (lone surrogates, as in command-line arguments), become
    `{"b64": ...}`.
    """
    if isinstance(value, dict):
        return {str(key): to_json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(one) for one in value]
    if isinstance(value, str):
        encoded = bytes_of(value)
        return value if encoded.decode(errors="replace") == value else to_json_value(encoded)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    # Arrays and numbers of NumPy are converted.
    return to_json_value(value.tolist()) if hasattr(value, "tolist") else value


def bytes_of(text: str) -> bytes:
    """Returns a text as UTF-8; undecodable bytes of a command line, lone surrogates, as they were.

    Raises InputError for half a surrogate pair.
    """
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(
            f"A text must be valid Unicode. It has half a surrogate pair: {ascii(text)}."
        ) from error


def signatures_from_json(definitions: dict[str, dict]) -> dict[str, Signature]:
    """Returns the signatures of SignatureDef messages in JSON."""
    return {
        name: Signature(
            one.get("method_name", "").rpartition("/")[2],
            {key: _tensor(info) for key, info in sorted(one.get("inputs", {}).items())},
            {key: _tensor(info) for key, info in sorted(one.get("outputs", {}).items())},
        )
        for name, one in definitions.items()
        if not name.startswith("__")  # __saved_model_init_op cannot be called
    }


def _tensor(info):
    shape = info.get("tensor_shape", {})
    sizes = tuple(int(size.get("size", 0)) for size in shape.get("dim", []))
    return info.get("dtype", ""), None if shape.get("unknown_rank") else sizes
