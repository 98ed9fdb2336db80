"""Presets of KerasNLP: the same outputs there, the same bits after both ways, nothing is run."""

import importlib
import json

import h5py
import keras
import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import keras_nlp
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert
from tests.albert_keras.formats.random_weights import (
    GROUPS,
    SMALL,
    assert_same_weights,
    with_arrays,
)
from tests.keras_line import IS_KERAS_3

CONFIG = AlbertConfig(**SMALL | GROUPS)
MASK = np.array([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1]])


def scrambled(model, seed=1):
    numpy_albert.scramble(model, seed=seed)
    return model


def weights_of(model):
    return OpenedModel.of(model.config, numpy_albert.weights_by_name(model), "test")


@pytest.fixture(scope="module")
def encoder():
    return scrambled(AlbertEncoder(CONFIG, dtype="float32"))


@pytest.fixture
def preset(encoder, tmp_path):
    folder = tmp_path / "preset"
    folder.mkdir()
    keras_nlp.write(weights_of(encoder), folder)
    return folder


def test_kerasnlp_computes_the_same_and_what_it_saves_is_read(encoder, preset):
    library = importlib.import_module("keras_hub" if IS_KERAS_3 else "keras_nlp")
    backbone = library.models.AlbertBackbone.from_preset(str(preset))
    ids = np.random.default_rng(0).integers(0, 50, (3, 7))
    segments = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3)
    ours = encoder({"input_ids": ids, "input_mask": MASK, "segment_ids": segments})
    theirs = backbone({"token_ids": ids, "padding_mask": MASK, "segment_ids": segments})
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5)
    backbone.set_weights([weight + np.float32(0.5) for weight in backbone.get_weights()])
    backbone.save_weights(preset / "model.weights.h5")
    weights = weights_of(encoder)
    changed = {name: array + np.float32(0.5) for name, array in weights.arrays.items()}
    assert_same_weights(keras_nlp.read(preset), with_arrays(weights, changed))


def test_the_names_of_keras_3_are_read(encoder, preset):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        for block in ("", "_1", "_2", "_3"):
            attention = file[f"layers/transformer_encoder{block}/_self_attention_layer"]
            for part in ("query", "key", "value", "output"):
                assert attention[f"{part}_dense/vars/0"] == attention[f"_{part}_dense/vars/0"]
                del attention[f"_{part}_dense"]
    assert_same_weights(keras_nlp.read(preset), weights_of(encoder))


def test_a_preset_of_keras_hub_is_read_without_the_head_of_its_task(encoder, preset):
    """It has the same arrays, under other names of its classes, as KerasHub 0.32 writes them."""
    values = json.loads((preset / "config.json").read_text())
    values["module"] = "keras_hub.src.models.albert.albert_backbone"
    values["registered_name"] = "keras_hub>AlbertBackbone"
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}}
    values["config"]["dtype"] = policy | {"registered_name": None}
    (preset / "config.json").write_text(json.dumps(values))
    (preset / "metadata.json").write_text('{"keras_version": "3.15.1", "tasks": ["MaskedLM"]}')
    (preset / "task.json").write_text('{"registered_name": "keras_hub>AlbertTextClassifier"}')
    assert_same_weights(keras_nlp.read(preset), weights_of(encoder))


def test_heads_without_a_place_are_named(tmp_path, caplog):
    keras_nlp.write(weights_of(AlbertForPretraining(CONFIG)), tmp_path)
    assert keras_nlp.read(tmp_path).heads == ()
    assert "cls/seq_relationship/output_weights" in caplog.text


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"registered_name": "keras_nlp>BertBackbone"}, "must describe KerasNLP's AlbertBackbone"),
        ({"hidden_dim": 10**6}, "tensors of"),
        ({"activation": "relu"}, "unknown arguments: activation"),
    ],
)
def test_another_class_or_a_wrong_argument_is_named(preset, changes, named):
    values = json.loads((preset / "config.json").read_text())
    if "registered_name" in changes:
        values |= changes
    values["config"] |= {key: value for key, value in changes.items() if key not in values}
    (preset / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=named):
        keras_nlp.read(preset)


def test_an_array_with_two_values_is_refused(preset):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        attention = file["layers/transformer_encoder/_self_attention_layer"]
        del attention["query_dense"]
        attention["query_dense/vars/0"] = np.zeros((8, 2, 4), "<f4")
    with pytest.raises(InputError, match="two values"):
        keras_nlp.read(preset)


def test_code_in_a_file_of_weights_is_not_looked_at(encoder, preset, tmp_path):
    trace = tmp_path / "trace"
    path = str(trace)
    layer = keras.layers.Lambda(lambda x: (open(path, "w").close(), x)[1])
    hostile = keras.Sequential([keras.layers.Input((1,)), layer]).to_json()
    trace.unlink()
    with h5py.File(preset / "model.weights.h5", "a") as file:
        file.attrs["model_config"] = hostile
    assert_same_weights(keras_nlp.read(preset), weights_of(encoder))
    assert not trace.exists()
