"""The REST routes of a model server: from method, path and body to status and answer.

POST /v1/models/NAME[/versions/N | /labels/L]:predict | :classify | :regress
GET  /v1/models/NAME[/versions/N | /labels/L][/metadata]
"""

import json
import re
import urllib.parse
from collections.abc import Mapping

from albert_keras.serving.protocol import rest_json
from albert_keras.serving.protocol.status import HTTP_STATUS, StatusError, invalid, status_of

_MODEL = r"/v1/models/(?P<model>[^/:]+)(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_POST = re.compile(rf"{_MODEL}:(?P<method>classify|regress|predict)", re.I | re.A)
_GET = re.compile(rf"{_MODEL}(?:/(?P<part>metadata))?", re.I | re.A)


def answer(models: Mapping, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Answers one request.

    Args:
        models: Name -> model. A model has two methods, both with `version` (int or None) and
            `label` (str or None), which raise StatusError if there is no such version: `servable`
            returns (version, Servable), the newest version if neither is given; `status` returns a
            list of (version, state, StatusError or None), newest first.
        method: "GET" or "POST".
        path: As received, `%` not decoded.

    Returns:
        HTTP status and JSON; 404 and no body if the path does not start with /v1/.
    """
    path = path.partition("?")[0]
    if not path.lower().startswith("/v1/"):
        return 404, b""
    try:
        return 200, _answer(models, method, path, body)
    except Exception as error:
        status = status_of(error)
        return HTTP_STATUS[status.code], json.dumps({"error": status.message}).encode()


def _answer(models, method, path, body):
    match = {"POST": _POST, "GET": _GET}[method].fullmatch(path)
    if not match:
        raise invalid(
            f"{method} {path} is not a route of this server. Use GET /v1/models/NAME[/metadata] or "
            "POST /v1/models/NAME:predict, :classify or :regress."
        )
    name, chosen = urllib.parse.unquote(match["model"]), {"label": match["label"]}
    chosen["version"] = None if match["version"] is None else _to_version(match["version"])
    if name not in models:
        raise unknown_model(name)
    if method == "POST":
        return _run(models[name].servable(**chosen)[1], match["method"].lower(), body)
    if match["part"]:
        return _metadata(name, *models[name].servable(**chosen))
    return _status(models[name].status(**chosen))


def unknown_model(name: str) -> StatusError:
    return StatusError("NOT_FOUND", f"This server has no model `{name}`.")


def unknown_version(name: str, version: int | None) -> StatusError:
    which = "loaded version" if version is None else f"version {version} that is loaded"
    return StatusError("NOT_FOUND", f"The model `{name}` has no {which}.")


def unknown_label(name: str, label: str) -> StatusError:
    return invalid(f"The model `{name}` has no loaded version with the label `{label}`.")


def _to_version(digits):
    # An int64 has at most 19 digits; Python refuses to read thousands of them.
    digits = digits.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) >= 2**63:
        raise invalid(f"A version must be less than 2^63. Received: {digits[:40]}.")
    return int(digits)


def _run(servable, method, body):
    document, signature = rest_json.read_body(body)
    if method == "predict":
        infos = servable.signature(signature).inputs
        tensors, in_rows = rest_json.read_predict(document, infos)
        return rest_json.write_predict(servable.predict(signature, tensors), in_rows)
    examples = rest_json.read_examples(document)
    if method == "classify":
        return rest_json.write_classify(*servable.classify(signature, examples))
    return rest_json.write_regress(servable.regress(signature, examples))


def _status(versions):
    entries = []
    for version, state, error in versions:
        code, message = (error.code, error.message) if error else ("OK", "")
        status = {"error_code": code, "error_message": message}
        entries.append({"version": str(version), "state": state, "status": status})
    return _encode({"model_version_status": entries})


def _metadata(name, version, servable):
    spec = {"name": name, "signature_name": "", "version": str(version)}
    metadata = {"signature_def": {"signature_def": servable.definitions()}}
    return _encode({"model_spec": spec, "metadata": metadata})


def _encode(value):
    return json.dumps(value, indent=1).encode()
