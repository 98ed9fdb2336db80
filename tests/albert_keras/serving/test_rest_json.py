"""JSON bodies become tensors, or an error that says what is wrong."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from albert_keras.serving.protocol.rest_json import read_body, read_examples, read_predict
from albert_keras.serving.protocol.status import StatusError


def infos_of(**dtypes):
    return {
        name: meta_graph_pb2.TensorInfo(dtype=dtype.as_datatype_enum)
        for name, dtype in dtypes.items()
    }


TEXT = infos_of(text=tf.string)
PAIR = infos_of(first=tf.string, second=tf.string)


@pytest.mark.parametrize(
    "dtype, values",
    [
        (tf.string, ["a", {"b64": "/w=="}]),
        (tf.int32, [2**31 - 1, -(2**31)]),
        (tf.int64, [2**63 - 1, -(2**63)]),
        (tf.float32, [1, -0.5, 3.4e38, float("inf"), float("nan")]),
        (tf.bool, [True, False]),
        (tf.int32, [[1, 2], [3, 4]]),
        (tf.int32, []),
    ],
)
def test_rows_and_columns_are_the_same_tensor(dtype, values):
    infos = infos_of(one=dtype)
    columns, in_rows = read_predict({"inputs": values}, infos)
    assert not in_rows and len(columns["one"]) == len(values)
    assert columns["one"].dtype == (object if dtype == tf.string else dtype.as_numpy_dtype)
    if values:
        for rows in (values, [{"one": value} for value in values]):
            tensors, in_rows = read_predict({"instances": rows}, infos)
            assert in_rows
            np.testing.assert_array_equal(tensors["one"], columns["one"])


@pytest.mark.parametrize(
    "dtype, value",
    [
        (tf.int32, 2**31),
        (tf.int32, 1.0),
        (tf.int32, True),
        (tf.int64, 10**400),
        (tf.float32, 1e39),
        (tf.float64, 10**400),
        (tf.float32, "1"),
        (tf.bool, 1),
        (tf.string, None),
        (tf.string, {"text": "a"}),
        (tf.string, {"b64": "a", "more": 1}),
    ],
)
def test_a_value_of_another_type_is_refused(dtype, value):
    with pytest.raises(StatusError, match=rf"`one` takes {dtype.name} values. Received: "):
        read_predict({"inputs": {"one": [value]}}, infos_of(one=dtype))


@pytest.mark.parametrize(
    "document, infos, message",
    [
        ({"instances": ["a"], "inputs": ["a"]}, TEXT, "either `instances` .* or `inputs`"),
        ({}, TEXT, "either `instances` .* or `inputs`"),
        ({"instances": []}, TEXT, "a list with at least one row"),
        ({"instances": ["a", ["b"]]}, TEXT, "`text` takes string values. Received: ..b"),
        ({"instances": [["a"], ["b", "c"]]}, TEXT, "`text` must have the same shape"),
        ({"instances": [["a"], "b"]}, TEXT, "`text` must have the same shape"),
        ({"instances": ["a"]}, PAIR, "several inputs: `instances` must name .* `first`, `second`"),
        ({"inputs": ["a"]}, PAIR, "several inputs: `inputs` must name .* `first`, `second`"),
        ({"instances": [{"first": "a"}]}, PAIR, "inputs `first`, `second`. Received as row 0"),
        ({"inputs": {"first": ["a"]}}, PAIR, "Missing: `second`"),
        ({"inputs": [{"b64": "_-8="}]}, TEXT, "base64 in the standard alphabet"),
    ],
)
def test_a_wrong_form_is_refused(document, infos, message):
    with pytest.raises(StatusError, match=message) as caught:
        read_predict(document, infos)
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{} x", b"[" * 10**6, b'{"signature_name":1}'])
def test_a_body_must_be_a_json_object(body):
    with pytest.raises(StatusError, match="must be|not valid JSON"):
        read_body(body)


def test_features_of_examples_have_their_types_and_the_context():
    document = {
        "context": {"t": "a", "n": [1, 2]},
        "examples": [{"t": {"b64": "/w=="}}, {"x": 0.5}],
    }
    first, second = map(tf.train.Example.FromString, read_examples(document))
    assert list(first.features.feature["t"].bytes_list.value) == [b"\xff"]
    assert list(second.features.feature["t"].bytes_list.value) == [b"a"]
    assert list(second.features.feature["n"].int64_list.value) == [1, 2]
    assert list(second.features.feature["x"].float_list.value) == [0.5]
    for wrong in ({"t": [1, "a"]}, {"t": None}, {"t": [["a"]]}, "a"):
        with pytest.raises(StatusError, match="must be"):
            read_examples({"examples": [wrong]})


def test_a_long_value_is_shortened_in_a_message():
    with pytest.raises(StatusError) as caught:
        read_predict({"inputs": [json.loads('{"a": "' + "x" * 5000 + '"}')]}, TEXT)
    assert len(caught.value.message) < 300
