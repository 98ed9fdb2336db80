"""Predict requests and their answers in the JSON of `tensorflow_model_server`."""

import base64
import functools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras.report import shortened_value
from albert_keras.serving.saved_model.signatures import to_array
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json


def read_request(body: bytes) -> tuple[dict, str]:
    """Parses the body of a request.

    Returns the JSON object, and the name of the signature; InputError if it is not an object.
    """
    try:
        document = parse_json(body.decode())
    except ValueError as error:
        raise InputError(f"The body of the request is not valid JSON: {error}.") from error
    name = document.get("signature_name", "") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise InputError(
            "The body must be a JSON object, and `signature_name` in it a string. Received: "
            f"{shortened_value(document)}."
        )
    return document, name or "serving_default"


def read_inputs(document: dict, specs: Mapping[str, tf.TensorSpec]) -> dict[str, np.ndarray]:
    """Reads the arrays of a request, either in rows (`instances`) or columns (`inputs`).

    Returns:
        Arrays [B, ...] by the names of `specs`, the inputs of the signature.

    Raises:
        InputError: If it has neither or both, other inputs, or values that do not fit.
    """
    in_rows = "instances" in document
    given = document.get("instances" if in_rows else "inputs")
    if in_rows == ("inputs" in document) or (in_rows and not (isinstance(given, list) and given)):
        raise InputError(
            "A predict request must have either `instances` (a list of at least one row) or "
            "`inputs` (the values of each input)."
        )
    if in_rows and any(map(_has_names, given)):
        wrong = [row for row in given if not _has_names(row) or set(row) != set(specs)]
        if wrong:
            raise InputError(
                "Each row of `instances` must be an object with the inputs "
                f"{', '.join(sorted(specs))}. Received: {shortened_value(wrong[0])}."
            )
        given = {name: [row[name] for row in given] for name in specs}
    elif not _has_names(given):
        given = {next(iter(specs)): given}  # the name of the only input may be left out
    if not set(specs) <= set(given):
        raise InputError(f"A request must name the inputs {', '.join(sorted(specs))}.")
    return {name: to_array(_with_bytes(given[name]), spec) for name, spec in specs.items()}


def write_answer(outputs: dict[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns an answer as JSON: `predictions` (a list of rows) or `outputs` (columns).

    NaN and Infinity are without quotes, and bytes that are not UTF-8 are U+FFFD.
    """
    columns = {name: _to_lists(array) for name, array in outputs.items()}
    if not in_rows:
        answer = {"outputs": _without_single_name(columns)}
    else:
        rows = zip(*columns.values(), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        answer = {"predictions": list(map(_without_single_name, named))}
    return json.dumps(answer, ensure_ascii=False).encode()


def _with_bytes(value):
    """Returns values of JSON as an array of objects, in which strings in base64 are bytes."""
    array = np.array(value, object)
    values = array.reshape(-1)  # a view
    for number, one in enumerate(values):
        if _is_base64(one):
            try:
                values[number] = base64.b64decode(one["b64"], validate=True)
            except ValueError as error:
                raise InputError("`b64` must be base64 in the standard alphabet.") from error
    return array


def _to_lists(array: np.ndarray) -> Any:
    """Returns an array as nested lists of JSON values."""
    if array.dtype == object:
        decode = functools.partial(bytes.decode, errors="replace")
        return np.vectorize(decode, otypes=[object])(array).tolist()
    if array.dtype == np.float32:
        array = array.astype(str).astype(float)  # 0.1 instead of 0.10000000149011612
    return array.tolist()


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _has_names(value):
    """Returns whether a value is an object with names, and not base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _without_single_name(named):
    return next(iter(named.values())) if len(named) == 1 else named
