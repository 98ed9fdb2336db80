"""Exports for all tests of the folder."""

import pytest

from albert_keras.serving.publish import export


@pytest.fixture(scope="session")
def small_export(tiny_run, tmp_path_factory):
    """Returns the ExportResult of int8 and float16 weights, with both TensorFlow Lite files."""
    out = tmp_path_factory.mktemp("saved_models") / "small"
    lite = ["float16", "int8"]
    return export(tiny_run, out, precision="int8", lite=lite, keras_precision="float16")
