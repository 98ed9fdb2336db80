"""A `.keras` file with half the bytes is read as before."""

import shutil

import numpy as np
import pytest
from tensorflow import keras

from albert_keras.serving.export.keras_model import check_keras_precision, halve_weights
from albert_keras.weights.load import open_keras_file
from data_pipeline.errors import InputError


@pytest.fixture
def file(tiny_export, tmp_path):
    return shutil.copy(tiny_export / "1.keras", tmp_path / "1.keras")


def test_weights_are_rounded_and_nothing_else(file):
    before = open_keras_file(file)
    halve_weights(file)
    after = open_keras_file(file)
    assert after.shapes == before.shapes
    for name in before.shapes:
        value = before.read(name)
        expected = np.float16(value) if value.ndim > 1 else value
        np.testing.assert_array_equal(after.read(name), expected)
    content = file.read_bytes()
    halve_weights(file)
    assert file.read_bytes() == content  # the same weights, the same file
    assert [path.name for path in file.parent.iterdir()] == ["1.keras"]


def test_weights_that_are_too_large_are_refused(file):
    model = keras.models.load_model(file)
    weight = next(weight for weight in model.weights if len(weight.shape) > 1)
    weight.assign(weight * 0 + 1e5)
    model.save(file)
    content = file.read_bytes()
    with pytest.raises(InputError, match="at most 65504 .* Received: 100000 in "):
        halve_weights(file)
    assert file.read_bytes() == content


def test_other_precisions_are_refused():
    check_keras_precision("float16")
    with pytest.raises(InputError, match="must be one of float32, float16. Received: int8"):
        check_keras_precision("int8")
