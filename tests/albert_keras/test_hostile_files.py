"""Model files that would run code are refused wherever a user may name one, and nothing happens."""

import json
import pickle
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.formats.open_weights import open_weights
from albert_keras.serving.predictor import Predictor
from data_pipeline.errors import InputError


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (self.mark, "w"))


def lambda_model(mark):
    code = eval(f"lambda x: (open({mark!r}, 'w').close(), x)[1]")
    inputs = keras.Input((3,))
    return keras.Model(inputs, keras.layers.Lambda(code, output_shape=(3,))(inputs))


def keras_archive(path, config):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "2.15.0"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", b"")


def write(kind, folder, mark):
    """Writes a hostile file of a kind and returns its path."""
    if kind in ("lambda.h5", "lambda.keras"):
        path = folder / kind
        lambda_model(mark).save(path)
        (folder.parent / "mark").unlink(missing_ok=True)  # the lambda ran when it was traced
        return path
    path = folder / kind
    if kind == "module.keras":
        config = {"module": "os", "class_name": "system", "registered_name": None}
        keras_archive(path, config | {"config": {"command": f"touch {mark}"}})
    elif kind == "saved_model_layer.keras":
        inner = tf.Module()

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def write_file(x):
            with tf.control_dependencies([tf.io.write_file(mark, "here")]):
                return {"x": tf.identity(x)}

        tf.saved_model.save(inner, str(folder / "inner"), signatures=write_file)
        config = {"module": "keras.layers", "class_name": "TFSMLayer", "registered_name": None}
        keras_archive(path, config | {"config": {"filepath": str(folder / "inner")}})
    elif kind == "out_of_folder.keras":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../../mark", b"here")
            archive.writestr("config.json", b"{}")
    elif kind == "array.npy":
        np.save(path, np.array([Trap(mark)], object), allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps({"weight": Trap(mark)}))
    return path


KINDS = ("lambda.h5", "lambda.keras", "module.keras", "saved_model_layer.keras")
KINDS += ("out_of_folder.keras", "array.npy", "pytorch_model.bin", "weights.pkl")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_would_run_code_is_refused(kind, tmp_path, tiny_tokenizer):
    folder, mark = tmp_path / "folder", tmp_path / "mark"
    folder.mkdir()
    path = write(kind, folder, str(mark))
    for place in (path, folder):
        with pytest.raises(InputError):
            open_weights(place, tokenizer=tiny_tokenizer)
        with pytest.raises(InputError):
            Predictor(place)
    assert not mark.exists()
