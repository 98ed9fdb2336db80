"""Presets and Keras files that would run something, or open other files, if one let them."""

import json

import h5py
import numpy as np
import pytest
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.formats import keras_nlp_preset
from albert_keras.formats.detection import find
from albert_keras.formats.model_weights import ModelWeights, encoder_shapes
from data_pipeline.errors import InputError

CONFIG = AlbertConfig(
    vocab_size=20,
    embedding_size=4,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
)
BIAS = "layers/dense_1/vars/1"


@pytest.fixture(scope="module")
def weights():
    rng = np.random.default_rng(0)
    shapes = encoder_shapes(CONFIG)
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return ModelWeights(CONFIG, tensors, "test")


@pytest.fixture
def preset(weights, tmp_path):
    folder = tmp_path / "preset"
    folder.mkdir()
    keras_nlp_preset.write(weights, folder)
    return folder


@pytest.fixture
def trace(tmp_path):
    return tmp_path / "trace"


@pytest.fixture
def hostile(trace):
    """Returns a model whose loading or calling leaves a trace."""
    path = str(trace)
    layer = keras.layers.Lambda(lambda x: (open(path, "w").close(), x)[1])
    model = keras.Sequential([keras.layers.Input((1,)), layer])
    assert trace.exists()
    trace.unlink()
    return model


def test_code_in_a_file_of_weights_is_not_looked_at(weights, preset, hostile, trace):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        file.attrs["model_config"] = hostile.to_json()
    tensors = keras_nlp_preset.read(preset).tensors
    assert all(np.array_equal(tensors[name], weights.tensors[name]) for name in weights.tensors)
    assert not trace.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"class_name": "Lambda"},
        {"class_name": "BertBackbone", "registered_name": "keras_nlp>BertBackbone"},
        {"registered_name": "keras_nlp>BertBackbone"},
        {"module": "os"},
    ],
)
def test_another_class_is_refused(preset, changes):
    values = json.loads((preset / "config.json").read_text())
    (preset / "config.json").write_text(json.dumps(values | changes))
    assert find(preset).kind == "keras-nlp"
    with pytest.raises(InputError, match="must describe KerasNLP's AlbertBackbone"):
        keras_nlp_preset.read(preset)


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"num_layers": "2"}, "num_layers"),
        ({"num_layers": True}, "num_layers"),
        ({"hidden_dim": 10**12}, "hidden_size"),
        ({"hidden_dim": 10**6}, "tensors of"),
        ({"activation": "relu"}, "activation"),
        ({"dropout": 2}, "dropout"),
    ],
)
def test_a_wrong_argument_is_named(preset, changes, named):
    values = json.loads((preset / "config.json").read_text())
    values["config"] |= changes
    (preset / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=named):
        keras_nlp_preset.read(preset)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_json_that_is_no_small_object_is_refused(preset, text):
    (preset / "config.json").write_text(text)
    assert find(preset) is None
    with pytest.raises(InputError, match="config.json"):
        keras_nlp_preset.read(preset)


def external_link(file, other):
    file[BIAS] = h5py.ExternalLink(other, "secret")


def soft_link(file, other):
    file[BIAS] = h5py.SoftLink("/layers/dense/vars/1")


def external_bytes(file, other):
    file.create_dataset(BIAS, (8,), "<f4", external=[(other, 0, 32)])


def virtual(file, other):
    layout = h5py.VirtualLayout((8,), "<f4")
    layout[:] = h5py.VirtualSource(other, "secret", (8,))
    file.create_virtual_dataset(BIAS, layout)


def compressed(file, other):
    file.create_dataset(BIAS, (10**10,), "<f4", chunks=(10**6,), compression="gzip")


def strings(file, other):
    file[BIAS] = ["a"] * 8


def cycle(file, other):
    file[BIAS] = np.zeros(8, "<f4")
    file["layers/again"] = file["layers"]


def two_values(file, other):
    file[BIAS] = np.zeros(8, "<f4")
    attention = file["layers/transformer_encoder/_self_attention_layer"]
    del attention["query_dense"]
    attention["query_dense/vars/0"] = np.zeros((8, 2, 4), "<f4")


@pytest.mark.parametrize(
    "change, named",
    [
        (external_link, "link"),
        (soft_link, "link"),
        (external_bytes, "plain array"),
        (virtual, "plain array"),
        (compressed, "plain array"),
        (strings, "plain array"),
        (cycle, "too many groups"),
        (two_values, "two values"),
    ],
)
def test_what_keras_never_writes_is_refused(preset, tmp_path, change, named):
    other = str(tmp_path / "other.h5")
    with h5py.File(other, "w") as file:
        file["secret"] = np.zeros(8, "<f4")
    with h5py.File(preset / "model.weights.h5", "a") as file:
        del file[BIAS]
        change(file, other)
    with pytest.raises(InputError, match=named):
        keras_nlp_preset.read(preset)
