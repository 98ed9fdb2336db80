"""A `.keras` file with half the bytes is read as before."""

import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.formats.keras_file import open_keras_file
from albert_keras.serving.publish import round_weights
from data_pipeline.errors import InputError


@pytest.fixture
def file(tiny_export, tmp_path):
    return shutil.copy(tiny_export / "1.keras", tmp_path / "1.keras")


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_weights_are_rounded_and_nothing_else(file, precision):
    before, size = open_keras_file(file), file.stat().st_size
    round_weights(file, precision)
    after = open_keras_file(file)
    assert after.shapes == before.shapes
    dtype = tf.as_dtype(precision).as_numpy_dtype
    for name in before.shapes:
        value = before.read(name)
        expected = np.float16(value.astype(dtype)) if value.ndim > 1 else value
        np.testing.assert_array_equal(after.read(name), expected)
    content = file.read_bytes()
    assert len(content) < size
    round_weights(file, precision)
    assert file.read_bytes() == content  # the same weights, the same file
    assert [path.name for path in file.parent.iterdir()] == ["1.keras"]


def test_weights_that_are_too_large_are_refused(file):
    model = keras.models.load_model(file)
    weight = next(weight for weight in model.weights if len(weight.shape) > 1)
    weight.assign(weight * 0 + 1e5)
    model.save(file)
    content = file.read_bytes()
    with pytest.raises(InputError, match="at most 65504 .* Received: 100000 in "):
        round_weights(file, "float16")
    assert file.read_bytes() == content
