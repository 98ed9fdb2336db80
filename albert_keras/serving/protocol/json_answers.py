"""Tensors of an answer -> JSON, by the rules of the server."""

import base64
import json
import math

import numpy as np

from albert_keras.serving.protocol.status import invalid


def write_predict(outputs, in_rows):
    """Returns the body of an answer: `predictions` in rows, or `outputs`.

    Args:
        outputs: dict of alias -> array; strings as an array of bytes objects.
        in_rows: bool. As the request was.
    """
    if not in_rows:
        columns = {name: _values(name, array) for name, array in outputs.items()}
        return _body("outputs", _without_single_name(columns))
    batch = None
    for name, array in outputs.items():
        if array.ndim == 0:
            raise invalid(f"Tensor name: {name} has no shape information ")
        if batch is not None and len(array) != batch:
            raise invalid(
                f"Tensor name: {name} has inconsistent batch size: {len(array)} expecting: {batch}"
            )
        batch = len(array)
    rows = [
        _without_single_name({name: _values(name, array[row]) for name, array in outputs.items()})
        for row in range(batch)
    ]
    return _body("predictions", rows)


def write_classify(classes, scores):
    """Returns the body with `results`: for each example its [label, score].

    Args:
        classes: bytes array [B, k] or None.
        scores: float array [B, k] or None.
    """
    count, width = (classes if classes is not None else scores).shape
    labels = np.full([count, width], b"") if classes is None else classes
    numbers = np.zeros([count, width]) if scores is None else scores
    return _body(
        "results",
        [
            [
                [label.decode("utf-8", "surrogateescape"), _number(score)]
                for label, score in zip(*row, strict=True)
            ]
            for row in zip(labels, numbers, strict=True)
        ],
    )


def write_regress(values):
    """Returns the body with `results`, one number for each example."""
    return _body("results", [_number(value) for value in values.reshape(-1)])


def _values(name, array):
    """Returns an array as nested lists."""
    if getattr(array, "ndim", 0):
        return [_values(name, one) for one in array]
    value = array[()] if isinstance(array, np.ndarray) else array
    if isinstance(value, bytes):
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(value).decode()}
        return value.decode("utf-8", errors="surrogateescape")
    return _number(value)


def _number(value):
    """Returns a Python number; float32 in as few digits as tell it from others."""
    if isinstance(value, np.float32) and math.isfinite(value):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def _without_single_name(named):
    return next(iter(named.values())) if len(named) == 1 else named


def _body(key, value):
    # NaN and Infinity come out bare, and bytes that are not UTF-8 as they are.
    return json.dumps({key: value}, ensure_ascii=False).encode("utf-8", "surrogateescape")
