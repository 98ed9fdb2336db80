"""JSON -> tensors of a request, by the rules and with the messages of the server."""

import base64
import binascii
import json
import math

import numpy as np
import tensorflow as tf

from albert_keras.serving.protocol.status import invalid

_INT_RANGES = {
    "int8": 31,  # the server reads all short types as int32
    "int16": 31,
    "uint8": 31,
    "int32": 31,
    "int64": 63,
}


def read_body(body):
    """Returns the JSON object of a body and its signature name, "" where none is given."""
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8", errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise invalid(f"JSON Parse error: {error}") from error
    if not isinstance(document, dict):
        raise invalid(f"JSON Value: {_shown(document)} Is not object")
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {_shown(document)} not formatted correctly. 'signature_name' key must "
            "be a string value."
        )
    return document, name


def read_predict(document, infos):
    """Returns the tensors of a predict request and whether they came in rows.

    Args:
        document: dict. The JSON object.
        infos: dict of alias -> TensorInfo.
    """
    rows, columns = "instances" in document, "inputs" in document
    if rows and columns:
        raise invalid(
            f"JSON Value: {_shown(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if rows:
        return _rows(document, infos), True
    if columns:
        return _columns(document["inputs"], infos), False
    raise invalid("Missing 'inputs' or 'instances' key")


def read_examples(document):
    """Returns the serialized tf.Example of a classify or regress request."""
    context = _features(document["context"]) if "context" in document else {}
    if "examples" not in document:
        raise invalid(
            f"JSON Value: {_shown(document)} When method is classify, key 'examples' is expected "
            "and was not found"
        )
    examples = document["examples"]
    if not isinstance(examples, list):
        raise invalid(
            f"JSON Value: {_shown(document)} Expecting 'examples' value to be an list/array"
        )
    if not examples:
        raise invalid(f"JSON Value: {_shown(document)} 'examples' value is an empty array")
    return [
        tf.train.Example(
            features=tf.train.Features(feature={**context, **_features(example)})
        ).SerializeToString()
        for example in examples
    ]


def _rows(document, infos):
    rows = document["instances"]
    if not isinstance(rows, list):
        raise invalid(f"JSON Value: {_shown(document)} Excepting 'instances' to be an list/array")
    if not rows:
        raise invalid(f"JSON Value: {_shown(document)} No values in 'instances' array")
    if len(infos) != 1 and not isinstance(rows[0], dict):
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    named = _is_object(rows[0])
    columns = {name: [] for name in infos}
    for number, row in enumerate(rows):
        if _is_object(row) != named:
            wanted, got = ("object", "list") if named else ("value/list", "object")
            raise invalid(f"Expecting {wanted} but got {got} at item {number} of input list")
        items = row if named else {next(iter(infos)): row}
        for name, item in items.items():
            key = f" key: {name}" if named else ""
            try:
                if name not in infos:
                    raise invalid(f"JSON object: does not have named input: {name}")
                array = _array(item, infos[name].dtype)
                first = columns[name][0] if columns[name] else array
                if array.size != first.size:
                    raise invalid(f"Expecting tensor size: {first.size} but got: {array.size}")
                if array.shape != first.shape:
                    shapes = [str(list(one.shape)).replace(" ", "") for one in (first, array)]
                    raise invalid(f"Expecting shape {shapes[0]} but got: {shapes[1]}")
            except Exception as error:
                raise invalid(
                    f"Failed to process element: {number}{key} of 'instances' list. Error: {error}"
                ) from error
            columns[name].append(array)
        if set(items) != set(infos):
            raise invalid(
                f"Failed to process element: {number} of 'instances' list. JSON object: "
                f"{_shown(row)} keys must be equal to: {','.join(sorted(infos))}"
            )
    return {name: np.stack(arrays) for name, arrays in columns.items()}


def _columns(value, infos):
    if not _is_object(value):
        if len(infos) != 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        name, info = next(iter(infos.items()))
        return {name: _array(value, info.dtype)}
    tensors = {}
    for name, info in infos.items():  # names beyond these are not looked at
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
        tensors[name] = _array(value[name], info.dtype)
    return tensors


def _array(value, dtype):
    """Returns an array of the type of `dtype`; strings as an array of bytes objects."""
    shape, inner = [], value
    while isinstance(inner, list):
        shape.append(len(inner))
        inner = inner[0] if inner else None
    leaves = []
    _collect(value, 0, shape, tf.as_dtype(dtype), leaves)
    kind = tf.as_dtype(dtype)
    array = np.empty(len(leaves), object if kind == tf.string else kind.as_numpy_dtype)
    array[:] = leaves
    return array.reshape(shape)


def _collect(value, level, shape, dtype, leaves):
    if isinstance(value, list):
        if level >= len(shape):
            raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
        if len(value) != shape[level]:
            raise invalid(
                f"Encountered list at unexpected size: {len(value)} at level: {level} "
                f"expected size: {shape[level]}"
            )
        for one in value:
            _collect(one, level + 1, shape, dtype, leaves)
        return
    if level != len(shape):
        raise invalid(
            f"JSON Value: {_shown(value)} found at incorrect level: {level + 1} in the JSON DOM. "
            f"Expected at level: {len(shape)}"
        )
    leaves.append(_leaf(value, dtype))


def _leaf(value, dtype):
    if dtype == tf.string and isinstance(value, dict):
        return _from_base64(value)
    if dtype == tf.string and isinstance(value, str):
        return value.encode("utf-8", errors="surrogateescape")
    if dtype == tf.bool and isinstance(value, bool):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype in (tf.float32, tf.float64) and number:
        if math.isfinite(value) and abs(value) > dtype.max:
            raise invalid(
                f"Cannot convert JSON value: {value} to {dtype.name} without loss of precision."
            )
        return value
    if dtype.name in _INT_RANGES and number and isinstance(value, int):
        if -(2 ** _INT_RANGES[dtype.name]) <= value < 2 ** _INT_RANGES[dtype.name]:
            return value
    raise invalid(
        f"JSON Value: {_shown(value)} Type: {_type_of(value)} is not of expected type: {dtype.name}"
    )


def _from_base64(value):
    if set(value) != {"b64"} or not isinstance(value["b64"], str):
        raise invalid(f"JSON Value: {_shown(value)} not formatted correctly for base64 data")
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("Unable to base64 decode") from error


def _features(example):
    if not isinstance(example, dict):
        raise invalid(f"Example must be JSON object but got JSON {_type_of(example)}")
    features = {}
    for name, content in example.items():
        values = content if isinstance(content, list) else [content]
        kinds = {_kind(name, value) for value in values}
        if len(kinds) > 1:
            raise invalid(
                f"Unexpected element type in feature: {name} expecting type: {min(kinds)}"
            )
        feature = tf.train.Feature()
        if kinds == {"bytes"}:
            feature.bytes_list.value.extend(_leaf(value, tf.string) for value in values)
        elif kinds == {"float"}:
            feature.float_list.value.extend(values)
        elif kinds:
            feature.int64_list.value.extend(int(value) for value in values)
        features[name] = feature
    return features


def _kind(name, value):
    if isinstance(value, str) or (isinstance(value, dict) and set(value) == {"b64"}):
        return "bytes"
    if isinstance(value, int | float):
        return "float" if isinstance(value, float) else "int64"
    raise invalid(f"Feature: {name} has element with unexpected JSON type: {_type_of(value)}")


def _is_object(value):
    """Whether a value is an object of named ones, not bytes."""
    return isinstance(value, dict) and not (set(value) == {"b64"} and isinstance(value["b64"], str))


def _type_of(value):
    names = {type(None): "Null", bool: "Bool", dict: "Object", list: "Array", str: "String"}
    return names.get(type(value), "Number")


def _shown(value):
    return json.dumps(value)
