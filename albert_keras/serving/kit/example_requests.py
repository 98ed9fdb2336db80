"""A request to each signature of a model, for the scripts of a kit."""

import json
import shlex

_TEXT = "The [MASK] left the harbour."


def example_requests(signatures):
    """Makes a request to each signature, of one row.

    Args:
        signatures: iterable of Signature, as `read_signatures` gives them.

    Returns:
        list of (method, dict). "predict", "classify" or "regress", and the body for REST.
    """
    requests = []
    for signature in signatures:
        if signature.method == "predict":
            given = {"inputs": {key: _value(key, one) for key, one in signature.inputs.items()}}
        else:
            features = signature.features.items()
            given = {"examples": [{key: _scalar(key, dtype) for key, dtype in features}]}
        requests.append((signature.method, {"signature_name": signature.name, **given}))
    return requests


def curl_script(model_name, requests, rest_port=8501):
    """Returns a shell script that asks the status and makes some requests.

    Args:
        model_name: str.
        requests: list of (method, dict), as from `example_requests`.
        rest_port: int.
    """
    address = f"http://127.0.0.1:{rest_port}/v1/models/{model_name}"
    curl = "curl --fail-with-body --silent --show-error"
    post = f"{curl} --header 'Content-Type: application/json'"
    lines = [
        "#!/bin/sh",
        f"# Another address than this computer's: ./curl.sh http://HOST:PORT/v1/models/{model_name}",
        f'model="${{1:-{address}}}"',
        "set -ex",
        f'{curl} "$model"',
    ]
    lines += [
        f'{post} "$model:{method}" --data {shlex.quote(json.dumps(body))}'
        for method, body in requests
    ]
    return "\n".join(lines) + "\n"


def python_literal(requests):
    """Returns requests as lines of a Python list; they hold texts and finite numbers only."""
    return "\n".join(f'    ("{method}", {json.dumps(body)}),' for method, body in requests)


def _value(name, spec):
    """Returns a value for an input, one row of it."""
    value = _scalar(name, spec.dtype)
    for place, size in reversed(list(enumerate(spec.shape))):
        value = [value] * (size or (1 if place == 0 else 3))
    return value


def _scalar(name, dtype):
    if dtype.name == "string":
        return _TEXT
    number = 1 if "mask" in name else 0 if "segment" in name or "type" in name else 5
    return float(number) if dtype.is_floating else number
