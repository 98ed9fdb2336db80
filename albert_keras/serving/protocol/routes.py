"""Paths of the REST interface → answers, for any server that has models."""

import json
import re
import urllib.parse

from google.protobuf.json_format import MessageToDict

from albert_keras.serving.protocol import json_answers, json_requests
from albert_keras.serving.protocol.status import StatusError, invalid, of_tensorflow

_SPEC = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_PREDICT = re.compile(
    rf"/v1/models/(?P<model>[^/:]+){_SPEC}:(?P<method>classify|regress|predict)", re.I | re.A
)
_STATUS = re.compile(
    rf"/v1/models(?:/(?P<model>[^/:]+))?{_SPEC}(?:/(?P<part>metadata))?", re.I | re.A
)


def answer(models, method, path, body, timeout=30.0):
    """Answers one request.

    Args:
        models: Mapping of name -> model. A model has two methods, both with `version` (int or None)
            and `label` (str or None), which raise StatusError where there is no such version:
            `servable` returns (version, Servable), the newest where neither is given; `status`
            returns a list of (version, state, StatusError or None), newest first.
        method: str. "GET" or "POST".
        path: str. As it came, `%` not decoded.
        body: bytes.
        timeout: float. Seconds to wait for other requests to be merged with.

    Returns:
        (status of HTTP, body as bytes of JSON); 404 without a body for what is not of the
        interface.
    """
    path = path.partition("?")[0]
    if not path.lower().startswith("/v1/"):
        return 404, b""
    try:
        return 200, _answer(models, method, path, body, timeout)
    except Exception as error:
        status = error if isinstance(error, StatusError) else of_tensorflow(error)
        message = json.dumps({"error": status.message})
        return status.http_status, message.encode()


def _answer(models, method, path, body, timeout):
    match = {"POST": _PREDICT, "GET": _STATUS}[method].fullmatch(path)
    if not match:
        raise invalid(f"Malformed request: {method} {path}")
    if match["model"] is None:
        raise invalid("Missing model name in request.")
    name = urllib.parse.unquote(match["model"])
    # No int64 has more digits; Python refuses to read thousands of them.
    digits = (match["version"] or "").lstrip("0")
    if len(digits) > 19 or int(digits or 0) >= 2**63:
        raise invalid(f"Failed to convert version: {match['version']} to numeric.")
    version = None if match["version"] is None else int(digits or 0)
    chosen = {"version": version, "label": match["label"]}
    if method == "POST":
        return _predict(models, match["method"].lower(), name, chosen, body, timeout)
    if match["part"]:
        return _metadata(models, name, chosen)
    return _status(models, name, chosen)


def _servable(models, name, chosen):
    if name not in models:
        version = chosen["version"]
        wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        raise StatusError("NOT_FOUND", f"Servable not found for request: {wanted}")
    return models[name].servable(**chosen)


def _predict(models, method, name, chosen, body, timeout):
    document, signature = json_requests.read_body(body)
    if method != "predict":
        examples = json_requests.read_examples(document)
        _, servable = _servable(models, name, chosen)
        if method == "classify":
            found = servable.classify(signature, examples, timeout)
            return json_answers.write_classify(*found)
        found = servable.regress(signature, examples, timeout)
        return json_answers.write_regress(found)
    _, servable = _servable(models, name, chosen)
    tensors, in_rows = json_requests.read_predict(document, servable.inputs_of(signature))
    outputs = servable.predict(signature, tensors, timeout=timeout)
    return json_answers.write_predict(outputs, in_rows)


def _status(models, name, chosen):
    if name not in models:
        raise StatusError("NOT_FOUND", f"Could not find any versions of model {name}")
    return _json(
        {
            "model_version_status": [
                {
                    "version": str(version),
                    "state": state,
                    "status": {
                        "error_code": error.code if error else "OK",
                        "error_message": error.message if error else "",
                    },
                }
                for version, state, error in models[name].status(**chosen)
            ]
        }
    )


def _metadata(models, name, chosen):
    version, servable = _servable(models, name, chosen)
    signatures = {
        key: MessageToDict(
            one, preserving_proto_field_name=True, including_default_value_fields=True
        )
        for key, one in servable.signatures.items()
    }
    spec = {"name": name, "signature_name": "", "version": str(version)}
    return _json({"model_spec": spec, "metadata": {"signature_def": {"signature_def": signatures}}})


def _json(value):
    return json.dumps(value, indent=1).encode()
