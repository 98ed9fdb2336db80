"""Values become what the model server reads as JSON."""

import numpy as np
import pytest

from albert_keras.serving.client.json_values import jsonable
from data_pipeline.errors import InputError


@pytest.mark.parametrize(
    "value, sent",
    [
        (("a", ["b"]), ["a", ["b"]]),
        ({"t": np.array([b"\xff"])}, {"t": [{"b64": "/w=="}]}),
        ("café \U0001f600", "café \U0001f600"),
        ("caf\udce9", {"b64": "Y2Fm6Q=="}),
        (np.float32(0.5), 0.5),
        (np.array([[True]]), [[True]]),
    ],
)
def test_values_become_json(value, sent):
    assert jsonable(value) == sent


@pytest.mark.parametrize("value", [None, {1, 2}, "\ud800"])
def test_values_without_json_are_refused(value):
    with pytest.raises(InputError):
        jsonable([value])
