"""A client for the REST interface of `tensorflow_model_server`; needs only the standard library.

Inputs and outputs have names:

    client = RestClient("http://127.0.0.1:8501", "books")
    client.predict(text=["The [MASK] left."])["filled_text"]
"""

import base64
import http.client
import json
import ssl
import urllib.parse
from typing import NamedTuple

from albert_keras.serving.client.client_errors import CODES, Retries, ServingError
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json


class VersionState(NamedTuple):
    """A version of a model on the server."""

    version: int
    state: str  # "START", "LOADING", "AVAILABLE", "UNLOADING" or "END"
    error: str  # why it failed to load; empty if it did not


class Signature(NamedTuple):
    """A signature of a model.

    Inputs and outputs are (dtype, shape), such as ("DT_STRING", (-1,)); the shape is None if the
    rank is unknown.
    """

    method: str  # "predict", "classify" or "regress"
    inputs: dict[str, tuple]
    outputs: dict[str, tuple]


class RestClient:
    """A client of one model. Several threads must not share it: give each its own.

    Calls change nothing on the server, so they are repeated if it is busy or not running (HTTP 503
    and 429, a refused or broken connection), but never after a time-out.

    Args:
        url: Address of the server, such as `http://127.0.0.1:8501`.
        model: Name of the model on the server.
        version: None is the newest version.
        label: Label of a version, instead of its number.
        timeout: Seconds for a call and its repetitions.
        retries: Maximum number of repetitions of a call.
        max_message_bytes: Longer answers are an error.

    Raises:
        InputError: If an argument is invalid.
    """

    def __init__(
        self,
        url: str,
        model: str,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        max_message_bytes: int = 64 << 20,
    ):
        if version is not None and label is not None:
            raise InputError("Give a version or a label, not both.")
        self.model = model
        self._path = f"/v1/models/{urllib.parse.quote(model, safe='')}"
        if version is not None:
            self._path += f"/versions/{version:d}"
        if label is not None:
            self._path += f"/labels/{urllib.parse.quote(label, safe='')}"
        self._retries = Retries(retries, timeout)
        self._connection = HttpConnection(url, max_message_bytes)
        self.url = self._connection.url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection; the next call opens another."""
        self._connection.close()

    def predict(self, signature: str = "serving_default", **inputs) -> dict[str, list]:
        """Calls a signature with the values of each input.

        Args:
            **inputs: A nested list or array [B, ...] per input; strings as str or bytes.

        Returns:
            Output -> nested list [B, ...].

        Raises:
            ServingError: If the server refuses the request, fails or does not answer.
        """
        body = {"signature_name": signature, "inputs": to_json_value(inputs)}
        outputs = self._call("POST", ":predict", "outputs", body)
        if isinstance(outputs, dict):
            return outputs
        only = self.metadata()[signature].outputs  # the server omits the name of a single output
        return {next(iter(only)): outputs}

    def predict_rows(self, rows: list, signature: str = "serving_default") -> list:
        """Calls a signature with rows.

        Args:
            rows: Each is the value of the only input, or a dict with a value per input.

        Returns:
            Per row the value of the only output, or a dict with a value per output.

        Raises:
            ServingError: If the server refuses the request, fails or does not answer.
        """
        body = {"signature_name": signature, "instances": to_json_value(rows)}
        return self._call("POST", ":predict", "predictions", body)

    def classify(self, examples: list[dict], signature: str = "classify") -> list[list]:
        """Returns a list of [label, score] for each example, a dict of features."""
        body = {"signature_name": signature, "examples": to_json_value(examples)}
        return self._call("POST", ":classify", "results", body)

    def regress(self, examples: list[dict], signature: str = "regress") -> list[float]:
        """Returns a float for each example, a dict of features."""
        body = {"signature_name": signature, "examples": to_json_value(examples)}
        return self._call("POST", ":regress", "results", body)

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
        path = self._path + path
        content = None if body is None else json.dumps(body).encode()

        def call(seconds):
            answer = self._connection.request(method, path, content, seconds)
            return self._read(path, key, answer)

        try:
            return self._retries.run(call)
        except ServingError as error:
            more = self._existing_names(error, body) if method == "POST" else ""
            if not more:
                raise
            target, status = self.url + path, error.http_status
            raise ServingError(target, error.code, error.message, status, more) from error

    def _read(self, path, key, answer):
        """Returns the value of a key of an answer, or raises the error in it."""
        text = answer.body.decode(errors="replace")
        try:
            content = parse_json(text)  # accepts NaN and Infinity, which the server writes
        except ValueError:
            content = None
        target = self.url + path
        if answer.status == 200 and isinstance(content, dict) and key in content:
            return content[key]
        message = content.get("error") if isinstance(content, dict) else None
        message = str(message) if message else text[:200].strip() or "an empty answer"
        if answer.status == 413:
            raise ServingError(target, "TOO_LARGE", message, 413)
        raise ServingError(target, CODES.get(answer.status, "UNREADABLE"), message, answer.status)

    def _existing_names(self, error, body):
        """Returns the signatures or inputs of the model, if the request named others."""
        message = error.message.lower()
        if error.code not in ("INVALID_ARGUMENT", "NOT_FOUND"):
            return ""
        try:
            signatures = self.metadata()
        except ServingError:
            return ""
        name = body["signature_name"]
        if name not in signatures:
            return f"The model has: {', '.join(sorted(signatures))}."
        if "input" in message or "keys" in message or "type" in message:
            listed = []
            for key, (dtype, shape) in signatures[name].inputs.items():
                sizes = "any shape" if shape is None else str(list(shape)).replace("-1", "B", 1)
                listed.append(f"{key} {dtype} {sizes}")
            return f"`{name}` takes: {', '.join(listed)}."
        return ""


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes


class HttpConnection:
    """Sends requests to one server, one after another, and refuses longer answers than a limit.

    Raises:
        InputError: If the address is not like `http://127.0.0.1:8501`.
    """

    def __init__(self, url: str, max_message_bytes: int = 64 << 20):
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"`{url}` is not the address of a server: {error}.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InputError(
                f"The address of a server must be like `http://127.0.0.1:8501`. Received: {url}."
            )
        self.url = url.rstrip("/")
        is_secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        self._connection = kind(parts.hostname, port)
        self._prefix = parts.path.rstrip("/")
        self._max_message_bytes = max_message_bytes

    def close(self):
        """Closes the connection; the next request opens another."""
        self._connection.close()

    def request(
        self, method: str, path: str, body: bytes | None = None, timeout: float = 30.0
    ) -> Answer:
        """Sends one HTTP request, without retries, and returns the answer, whatever its status.

        Args:
            method: "GET" or "POST".
            path: Starts with `/v1`.
            body: JSON.
            timeout: Seconds without any data after which the request fails.

        Raises:
            ServingError: If there is no answer, or it is too long.
        """
        try:
            return self._exchange(method, path, body, timeout)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            code, message = "UNREADABLE", str(error) or type(error).__name__
            if isinstance(error, TimeoutError):
                code, message = "DEADLINE_EXCEEDED", f"no answer within {timeout:.3g} s"
            elif isinstance(error, ssl.SSLError):
                message = f"TLS failed, {error}"
            elif isinstance(error, OSError | http.client.IncompleteRead):
                code, message = "UNAVAILABLE", getattr(error, "strerror", None) or message
            raise ServingError(self.url + path, code, message, answered=False) from error

    def _exchange(self, method, path, body, timeout):
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.timeout = timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        content = response.read(self._max_message_bytes + 1)
        if len(content) > self._max_message_bytes:
            self.close()
            limit = f"the answer is larger than max_message_bytes ({self._max_message_bytes})"
            raise ServingError(self.url + path, "RESOURCE_EXHAUSTED", limit)
        if response.length:  # bytes that are missing
            raise http.client.IncompleteRead(content, response.length)
        return Answer(response.status, content)


def to_json_value(value):
    """Returns a value in the form that the server reads from JSON.

    Args:
        value: Nested lists, tuples, dicts and arrays of str, bytes, int, float and bool. Bytes, and
            strings with undecodable bytes (lone surrogates, as in command-line arguments), become
            `{"b64": ...}`.

    Raises:
        InputError: If it contains a value of another type.
    """
    if isinstance(value, dict):
        return {str(key): to_json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(one) for one in value]
    if isinstance(value, str):
        try:
            encoded = value.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise InputError(
                f"A text must be valid Unicode. It has half a surrogate pair: {ascii(value)}."
            ) from error
        return value if encoded.decode(errors="replace") == value else to_json_value(encoded)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, bool | int | float):
        return value
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return to_json_value(value.tolist())
    raise InputError(
        "Inputs must be nested lists or arrays of strings, bytes and numbers. "
        f"Received: {type(value).__name__}."
    )


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
