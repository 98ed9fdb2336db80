"""The JSON bodies of the REST interface: requests to tensors, and tensors to answers."""

import base64
import json
import math
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from albert_keras.serving.protocol.status import invalid
from data_pipeline.limits import parse_json


def read_body(body: bytes) -> tuple[dict, str]:
    """Parses the body of a request; bytes that are not UTF-8 reach the model as they are.

    Returns:
        The JSON object, and the name of the signature, "" if the request names none.
    """
    try:
        document = parse_json(body.decode("utf-8", errors="surrogateescape"))
    except ValueError as error:
        raise invalid(f"The body of the request is not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise invalid(f"The body must be a JSON object. Received: {_shown(document)}.")
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(f"`signature_name` must be a string. Received: {_shown(name)}.")
    return document, name


def read_predict(document: dict, infos: Mapping) -> tuple[dict[str, np.ndarray], bool]:
    """Reads the tensors of a predict request to inputs with these TensorInfos.

    Returns:
        The tensors, strings as an object array of bytes; and whether they came in rows,
        `instances`, instead of columns, `inputs`.
    """
    in_rows = "instances" in document
    if in_rows == ("inputs" in document):
        raise invalid(
            "A predict request must have either `instances` (a list of rows) or `inputs` (the "
            "values of each input)."
        )
    columns = _to_columns(document["instances"], infos) if in_rows else document["inputs"]
    if not _is_object(columns):
        columns = {_only_input(infos, "inputs"): columns}
    missing = set(infos) - set(columns)
    if missing:
        raise invalid(
            f"`inputs` must have all inputs of the signature. Missing: {_listed(missing)}."
        )
    tensors = {name: _to_array(name, columns[name], info.dtype) for name, info in infos.items()}
    return tensors, in_rows


def read_examples(document: dict) -> list[bytes]:
    """Returns the tf.Example protos of a classify or regress request."""
    examples = document.get("examples")
    if not isinstance(examples, list) or not examples:
        raise invalid("`examples` must be a list with at least one object of features.")
    context = _to_features(document.get("context", {}))
    return [
        tf.train.Example(
            features=tf.train.Features(feature=context | _to_features(example))
        ).SerializeToString()
        for example in examples
    ]


def write_predict(outputs: dict[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns the body of an answer: `predictions` (a list of rows) or `outputs` (columns)."""
    if not in_rows:
        columns = {name: _to_lists(name, array) for name, array in outputs.items()}
        return _encode("outputs", _without_single_name(columns))
    lengths = {len(array) if array.ndim else None for array in outputs.values()}
    if len(lengths) != 1 or None in lengths:
        raise invalid(
            "The outputs of this signature do not all have one value per row. Send `inputs` "
            "instead of `instances`."
        )
    rows = [
        _without_single_name({name: _to_lists(name, array[row]) for name, array in outputs.items()})
        for row in range(*lengths)
    ]
    return _encode("predictions", rows)


def write_classify(classes: np.ndarray | None, scores: np.ndarray | None) -> bytes:
    """Returns the body of an answer to a classify request: a list of [label, score] per example.

    Classes (bytes) and scores (floats) have the shape [B, k].
    """
    shape = (classes if classes is not None else scores).shape
    labels = _to_lists("", np.full(shape, b"") if classes is None else classes)
    numbers = _to_lists("", np.zeros(shape) if scores is None else scores)
    pairs = [list(zip(*row, strict=True)) for row in zip(labels, numbers, strict=True)]
    return _encode("results", pairs)


def write_regress(values: np.ndarray) -> bytes:
    """Returns the body of an answer to a regress request: one number per example."""
    return _encode("results", _to_lists("", values.reshape(-1)))


def _to_columns(rows, infos):
    """Returns the values of each input, dict of name -> list, from a list of rows."""
    if not isinstance(rows, list) or not rows:
        raise invalid("`instances` must be a list with at least one row.")
    if not any(_is_object(row) for row in rows):
        return {_only_input(infos, "instances"): rows}
    for number, row in enumerate(rows):
        if not _is_object(row) or set(row) != set(infos):
            raise invalid(
                f"Each row of `instances` must be an object with the inputs {_listed(infos)}. "
                f"Received as row {number}: {_shown(row)}."
            )
    return {name: [row[name] for row in rows] for name in infos}


def _only_input(infos, key):
    if len(infos) != 1:
        raise invalid(
            f"The signature has several inputs: `{key}` must name the values of {_listed(infos)}."
        )
    return next(iter(infos))


def _to_array(name, value, dtype):
    """Returns nested lists as an array."""
    dtype = tf.as_dtype(dtype)
    elements = np.array(value, object)
    if elements.size and isinstance(elements.flat[0], list):
        raise invalid(f"All rows and lists of the input `{name}` must have the same shape.")
    converted = [_to_element(name, one, dtype) for one in elements.flat]
    return np.array(converted, dtype.as_numpy_dtype).reshape(elements.shape)


def _to_element(name, value, dtype):
    if dtype == tf.string:
        if isinstance(value, str):
            return value.encode("utf-8", errors="surrogateescape")
        if _is_base64(value):
            try:
                return base64.b64decode(value["b64"], validate=True)
            except ValueError as error:
                raise invalid("`b64` must be base64 in the standard alphabet.") from error
    elif isinstance(value, bool):
        if dtype == tf.bool:
            return value
    elif dtype.is_integer and isinstance(value, int):
        if dtype.min <= value <= dtype.max:
            return value
    elif dtype.is_floating and isinstance(value, int | float):
        if not float(dtype.max) < abs(value) < math.inf:
            return float(value)
    raise invalid(f"The input `{name}` takes {dtype.name} values. Received: {_shown(value)}.")


def _to_features(example):
    """Returns an object of features as a dict of name -> tf.train.Feature."""
    if not isinstance(example, dict):
        raise invalid(f"An example must be an object of features. Received: {_shown(example)}.")
    features = {}
    for name, content in example.items():
        values = content if isinstance(content, list) else [content]
        if all(isinstance(value, str) or _is_base64(value) for value in values):
            texts = [_to_element(name, value, tf.string) for value in values]
            kind = {"bytes_list": tf.train.BytesList(value=texts)}
        elif all(isinstance(value, int) for value in values):
            kind = {"int64_list": tf.train.Int64List(value=values)}
        elif all(isinstance(value, float) for value in values):
            kind = {"float_list": tf.train.FloatList(value=values)}
        else:
            raise invalid(
                f"The feature `{name}` must be strings, integers or floats, all of one type. "
                f"Received: {_shown(content)}."
            )
        features[name] = tf.train.Feature(**kind)
    return features


def _to_lists(name, array):
    """Returns an array as nested lists of JSON values."""
    if getattr(array, "ndim", 0):
        return [_to_lists(name, one) for one in array]
    value = array[()] if isinstance(array, np.ndarray) else array
    if isinstance(value, bytes):
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(value).decode()}
        return value.decode("utf-8", errors="surrogateescape")
    if isinstance(value, np.float32) and math.isfinite(value):
        return float(str(value))  # 0.1 instead of 0.10000000149011612
    return value.item() if isinstance(value, np.generic) else value


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _is_object(value):
    """Returns whether a value is an object with names, and not base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _without_single_name(named):
    return next(iter(named.values())) if len(named) == 1 else named


def _listed(names):
    return ", ".join(f"`{name}`" for name in sorted(names))


def _shown(value):
    text = json.dumps(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _encode(key, value):
    # NaN and Infinity are written without quotes, and bytes that are not UTF-8 as they are.
    return json.dumps({key: value}, ensure_ascii=False).encode("utf-8", "surrogateescape")
