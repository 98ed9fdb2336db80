"""A client for the REST interface of `tensorflow_model_server`; the standard library is enough.

Values go in and come out by name:

    client = RestClient("http://127.0.0.1:8501", "books")
    client.predict(text=["The [MASK] left."])["filled_text"]
"""

import json
import urllib.parse
from typing import NamedTuple

from albert_keras.serving.client.client_errors import CODES, Retries, ServingError
from albert_keras.serving.client.http_connection import HttpConnection
from albert_keras.serving.client.json_values import jsonable
from data_pipeline.errors import InputError


class VersionState(NamedTuple):
    """A version at the server.

    Attributes:
        version: int.
        state: str. "START", "LOADING", "AVAILABLE", "UNLOADING" or "END".
        error: str. Why it failed to load, else empty.
    """

    version: int
    state: str
    error: str


class Signature(NamedTuple):
    """A signature of a model.

    Attributes:
        method: str. "predict", "classify" or "regress".
        inputs, outputs: dict of name -> (dtype, shape), such as ("DT_STRING", (-1,)); the shape is
            None where the rank is unknown.
    """

    method: str
    inputs: dict
    outputs: dict


class RestClient:
    """Asks one model of one server. Not for several threads at once: give each its own.

    No call changes anything at the server, so that all are repeated where it is busy or not
    there (HTTP 503 and 429, a refused or cut connection), never after a time-out.

    Args:
        url: str. Address of the server, such as `http://127.0.0.1:8501`.
        model: str. Its name there.
        version: int or None. None asks the newest one.
        label: str or None. A label instead of a version.
        timeout: float. Seconds for a call with all its repetitions.
        retries: int. How often to repeat a call.
        max_message_bytes: int. Longer answers are refused.

    Raises:
        InputError: If one of these cannot be.
    """

    def __init__(
        self,
        url,
        model,
        version=None,
        label=None,
        timeout=30.0,
        retries=3,
        max_message_bytes=64 << 20,
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
        self._connection = HttpConnection(url, timeout, max_message_bytes)
        self.url = self._connection.url

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connection; the next call opens another."""
        self._connection.close()

    def predict(self, signature="serving_default", **inputs):
        """Asks a signature.

        Args:
            signature: str.
            **inputs: For each input a nested list or array, its first dimension the batch B;
                strings as str or bytes.

        Returns:
            dict of output -> nested list, its first dimension B.

        Raises:
            ServingError: If the server refuses, fails or does not answer.
        """
        body = {"signature_name": signature, "inputs": jsonable(inputs)}
        outputs = self._ask("POST", ":predict", "outputs", body)
        if isinstance(outputs, dict):
            return outputs
        only = self.metadata()[signature].outputs  # the server drops the name of a single output
        return {next(iter(only)): outputs}

    def predict_rows(self, rows, signature="serving_default"):
        """Asks a signature in rows.

        Args:
            rows: list. Each the value of the only input, or a dict with a value for each input.
            signature: str.

        Returns:
            list. For each row the value of the only output, or a dict with a value of each.

        Raises:
            ServingError: If the server refuses, fails or does not answer.
        """
        body = {"signature_name": signature, "instances": jsonable(rows)}
        return self._ask("POST", ":predict", "predictions", body)

    def classify(self, examples, signature="classify"):
        """Returns for each example, a dict of features, a list of [label, score]."""
        body = {"signature_name": signature, "examples": jsonable(examples)}
        return self._ask("POST", ":classify", "results", body)

    def regress(self, examples, signature="regress"):
        """Returns for each example, a dict of features, a float."""
        body = {"signature_name": signature, "examples": jsonable(examples)}
        return self._ask("POST", ":regress", "results", body)

    def status(self):
        """Returns the versions at the server, a list of VersionState."""
        return [
            VersionState(
                int(entry["version"]), entry["state"], entry["status"].get("error_message", "")
            )
            for entry in self._ask("GET", "", "model_version_status")
        ]

    def metadata(self):
        """Returns the signatures of the model, a dict of name -> Signature."""
        signatures = self._ask("GET", "/metadata", "metadata")["signature_def"]["signature_def"]
        return {
            name: Signature(
                one.get("method_name", "").rpartition("/")[2],
                {key: _tensor(info) for key, info in one.get("inputs", {}).items()},
                {key: _tensor(info) for key, info in one.get("outputs", {}).items()},
            )
            for name, one in signatures.items()
            if not name.startswith("__")  # __saved_model_init_op is none to ask
        }

    def _ask(self, method, path, key, body=None):
        """Returns what stands under a key of the answer."""
        path = self._path + path
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}

        def call(seconds):
            answer = self._connection.request(method, path, content, headers, seconds)
            return self._read(path, key, answer)

        try:
            return self._retries.run(call)
        except ServingError as error:
            more = self._known(error, body) if method == "POST" else ""
            if not more:
                raise
            target, status = self.url + path, error.http_status
            raise ServingError(target, error.code, error.said, status, more) from error

    def _read(self, path, key, answer):
        """Returns what stands under a key of an answer, or raises what it says instead."""
        text = answer.body.decode(errors="replace")
        try:
            content = json.loads(text)  # takes NaN and Infinity, which the server writes
        except (ValueError, RecursionError):
            content = None
        target = self.url + path
        if answer.status == 200 and isinstance(content, dict) and key in content:
            return content[key]
        said = content.get("error") if isinstance(content, dict) else None
        said = str(said) if said else text[:200].strip() or "an empty answer"
        if answer.status == 413:
            raise ServingError(target, "TOO_LARGE", said, 413)
        raise ServingError(target, CODES.get(answer.status, "UNREADABLE"), said, answer.status)

    def _known(self, error, body):
        """Returns what the model has, where a request asked for something else."""
        said = error.said.lower()
        if error.code not in ("INVALID_ARGUMENT", "NOT_FOUND"):
            return ""
        try:
            signatures = self.metadata()
        except ServingError:
            return ""
        name = body["signature_name"]
        if name not in signatures:
            return f"It has: {', '.join(sorted(signatures))}."
        if "input" in said or "keys" in said or "type" in said:
            inputs = signatures[name].inputs.items()
            listed = ", ".join(
                f"{key} {dtype} {_brackets(shape)}" for key, (dtype, shape) in inputs
            )
            return f"`{name}` takes: {listed}."
        return ""


def _tensor(info):
    shape = info.get("tensor_shape", {})
    if shape.get("unknown_rank"):
        return info.get("dtype", ""), None
    return info.get("dtype", ""), tuple(int(size["size"]) for size in shape.get("dim", []))


def _brackets(shape):
    return "of any shape" if shape is None else str(list(shape)).replace("-1", "B", 1)
