"""Example requests to each signature of a model, for the scripts of a server kit."""

import json
import shlex

_TEXT = "The [MASK] left the harbour."


def example_requests(signatures):
    """Returns a request with one row for each signature.

    Args:
        signatures: iterable of Signature, as returned by `read_signatures`.

    Returns:
        list of (method, dict). "predict", "classify" or "regress", and the body for REST.
    """
    requests = []
    for signature in signatures:
        if signature.method == "predict":
            body = {"inputs": {key: _value(key, spec) for key, spec in signature.inputs.items()}}
        else:
            features = signature.features.items()
            body = {"examples": [{key: _scalar(key, dtype) for key, dtype in features}]}
        requests.append((signature.method, {"signature_name": signature.name, **body}))
    return requests


def curl_script(model_name, requests, rest_port=8501):
    """Returns a shell script that shows the status of a model and sends some requests.

    Args:
        model_name: str.
        requests: list of (method, dict), as returned by `example_requests`.
        rest_port: int.
    """
    address = f"http://127.0.0.1:{rest_port}/v1/models/{model_name}"
    curl = "curl --fail-with-body --silent --show-error"
    post = f"{curl} --header 'Content-Type: application/json'"
    lines = [
        "#!/bin/sh",
        f"# For another server: ./curl.sh http://HOST:PORT/v1/models/{model_name}",
        f'model="${{1:-{address}}}"',
        "set -ex",
        f'{curl} "$model"',
    ]
    lines += [
        f'{post} "$model:{method}" --data {shlex.quote(json.dumps(body))}'
        for method, body in requests
    ]
    return "\n".join(lines) + "\n"


def _value(name, spec):
    """Returns one row for an input: nested lists, of length 3 where the shape allows any."""
    value = _scalar(name, spec.dtype)
    for axis, size in reversed(list(enumerate(spec.shape))):
        value = [value] * (size or (1 if axis == 0 else 3))
    return value


def _scalar(name, dtype):
    if dtype.name == "string":
        return _TEXT
    number = 1 if "mask" in name else 0 if "segment" in name or "type" in name else 5
    return float(number) if dtype.is_floating else number
