"""The JSON bodies of the REST interface of the model server: requests to arrays, and back."""

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras.report import shortened_value
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json


def read_request(body: bytes) -> tuple[dict, str]:
    """Parses the body of a request; bytes that are not UTF-8 reach the model as they are.

    Returns:
        The JSON object, and the name of the signature.

    Raises:
        InputError: If it is not a JSON object. All functions of this file raise it for a request
            that is not valid.
    """
    try:
        document = parse_json(body.decode("utf-8", errors="surrogateescape"))
    except ValueError as error:
        raise InputError(f"The body of the request is not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise InputError(f"The body must be a JSON object. Received: {shortened_value(document)}.")
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise InputError(f"`signature_name` must be a string. Received: {shortened_value(name)}.")
    return document, name or "serving_default"


def read_predict(document: dict, inputs: Mapping[str, tf.TensorSpec]) -> dict[str, np.ndarray]:
    """Reads the arrays of a predict request, either in rows (`instances`) or columns (`inputs`)."""
    in_rows = "instances" in document
    if in_rows == ("inputs" in document):
        raise InputError(
            "A predict request must have either `instances` (a list of rows) or `inputs` (the "
            "values of each input)."
        )
    given = document["instances" if in_rows else "inputs"]
    if in_rows and (not isinstance(given, list) or not given):
        raise InputError("`instances` must be a list with at least one row.")
    if in_rows and any(map(_has_names, given)):
        for number, row in enumerate(given):
            if not _has_names(row) or set(row) != set(inputs):
                raise InputError(
                    f"Each row of `instances` must be an object with the inputs {_listed(inputs)}. "
                    f"Received as row {number}: {shortened_value(row)}."
                )
        given = {name: [row[name] for row in given] for name in inputs}
    elif not _has_names(given):
        if len(inputs) != 1:
            raise InputError(f"The signature has several inputs: name {_listed(inputs)}.")
        given = {name: given for name in inputs}
    if not set(inputs) <= set(given):
        raise InputError(f"A request must have all inputs of the signature: {_listed(inputs)}.")
    return {name: _to_array(given[name], spec) for name, spec in inputs.items()}


def write_predict(outputs: dict[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns an answer as JSON: `predictions` (a list of rows) or `outputs` (columns).

    NaN and Infinity are without quotes, and bytes that are not UTF-8 as they are.
    """
    columns = {name: _to_lists(array) for name, array in outputs.items()}
    if not in_rows:
        answer = {"outputs": _without_single_name(columns)}
    elif len({array.shape[:1] for array in outputs.values()}) > 1:
        raise InputError(
            "The outputs of this signature do not all have one value per row. Send `inputs` "
            "instead of `instances`."
        )
    else:
        rows = zip(*columns.values(), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        answer = {"predictions": list(map(_without_single_name, named))}
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _to_array(value, spec):
    try:
        array = tf.constant(_with_bytes(value), spec.dtype).numpy()
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The input `{spec.name}` must be {spec.dtype.name}, and all rows and lists must have "
            f"the same shape. Received: {shortened_value(value)}."
        ) from error
    if not spec.shape.is_compatible_with(np.shape(array)):
        raise InputError(
            f"The input `{spec.name}` must have the shape {spec.shape}. "
            f"Received: {np.shape(array)}."
        )
    return np.asarray(array)


def _with_bytes(value):
    """Returns nested lists of JSON values with their strings, also in base64, as bytes."""
    if isinstance(value, list):
        return [_with_bytes(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-8", errors="surrogateescape")
    if _is_base64(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except ValueError as error:
            raise InputError("`b64` must be base64 in the standard alphabet.") from error
    return value


def _to_lists(array) -> Any:
    """Returns an array as nested lists of JSON values."""
    if array.ndim:
        return [_to_lists(one) for one in map(np.asarray, array)]
    value = array[()]
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="surrogateescape")
    if isinstance(value, np.float32) and math.isfinite(value):
        return float(str(value))  # 0.1 instead of 0.10000000149011612
    return value.item() if isinstance(value, np.generic) else value


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _has_names(value):
    """Returns whether a value is an object with names, and not base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _without_single_name(named):
    return next(iter(named.values())) if len(named) == 1 else named


def _listed(names):
    return ", ".join(f"`{name}`" for name in sorted(names))
