import importlib

import h5py
import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import keras_nlp_preset
from albert_keras.formats.detection import find
from albert_keras.formats.keras_nlp import from_keras_nlp, to_keras_nlp
from albert_keras.formats.model_weights import ModelWeights
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from data_pipeline.tensorflow_line import needs_tf_keras
from tests.albert_keras import numpy_albert

CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=8,
    num_hidden_layers=4,
    num_hidden_groups=2,
    inner_group_num=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
)
QUERY = "layers/transformer_encoder_3/_self_attention_layer/_query_dense/vars/0"


def weights_of(model):
    numpy_albert.scramble(model)
    return ModelWeights(model.config, numpy_albert.weights_by_name(model), "test")


def assert_same(returned, weights):
    assert returned.config == weights.config
    assert returned.tensors.keys() == weights.tensors.keys()
    for name, array in weights.tensors.items():
        np.testing.assert_array_equal(returned.tensors[name], array)


@pytest.fixture(scope="module")
def encoder_weights():
    return weights_of(AlbertEncoder(CONFIG, dtype="float32"))


@pytest.fixture
def preset(encoder_weights, tmp_path):
    keras_nlp_preset.write(encoder_weights, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_hidden_groups": 1, "inner_group_num": 1, "hidden_dropout_prob": 0.1}
        | {"attention_probs_dropout_prob": 0.1},
        {"embedding_size": 8},
        {"embedding_size": 8, "embedding_projection": "always"},
    ],
)
def test_there_and_back_is_the_same_model(changes, tmp_path):
    weights = weights_of(AlbertEncoder(CONFIG.replace(**changes), dtype="float32"))
    keras_nlp_preset.write(weights, tmp_path)
    assert find(tmp_path).kind == "keras-nlp"
    assert_same(keras_nlp_preset.read(tmp_path), weights)


def test_kerasnlp_loads_what_is_written(encoder_weights, preset):
    library = importlib.import_module("keras_hub" if needs_tf_keras() else "keras_nlp")
    loaded = from_keras_nlp(library.models.AlbertBackbone.from_preset(str(preset)))
    weights = ModelWeights(loaded.config, numpy_albert.weights_by_name(loaded), "")
    assert_same(weights, encoder_weights)


def test_what_kerasnlp_saves_is_read(encoder_weights, preset):
    encoder = AlbertEncoder(CONFIG, dtype="float32")
    numpy_albert.scramble(encoder, seed=3)
    to_keras_nlp(encoder).save_weights(preset / "model.weights.h5")
    returned = keras_nlp_preset.read(preset)
    assert_same(returned, ModelWeights(CONFIG, numpy_albert.weights_by_name(encoder), ""))


def test_the_names_of_keras_3_are_read(encoder_weights, preset):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        for block in ("", "_1", "_2", "_3"):
            attention = file[f"layers/transformer_encoder{block}/_self_attention_layer"]
            for part in ("query", "key", "value", "output"):
                assert attention[f"{part}_dense/vars/0"] == attention[f"_{part}_dense/vars/0"]
                del attention[f"_{part}_dense"]
    assert_same(keras_nlp_preset.read(preset), encoder_weights)


def test_the_vocabulary_travels(encoder_weights, tmp_path, caplog):
    files = {"30k-clean.model": b"pieces", "vocab.txt": b"words"}
    keras_nlp_preset.write(encoder_weights._replace(tokenizer_files=files), tmp_path)
    assert (tmp_path / "assets/tokenizer/vocabulary.spm").read_bytes() == b"pieces"
    assert keras_nlp_preset.read(tmp_path).tokenizer_files == {"spiece.model": b"pieces"}
    assert "vocab.txt" in caplog.text


def test_heads_without_a_place_are_named(tmp_path, caplog):
    keras_nlp_preset.write(weights_of(AlbertForPretraining(CONFIG)), tmp_path)
    assert "cls/seq_relationship/output_weights" in caplog.text
    assert keras_nlp_preset.read(tmp_path).heads == ()


def test_a_missing_tensor_is_named_before_anything_is_written(encoder_weights, tmp_path):
    tensors = dict(encoder_weights.tensors)
    del tensors["bert/pooler/dense/bias"]
    with pytest.raises(InputError, match="bert/pooler/dense/bias"):
        keras_nlp_preset.write(encoder_weights._replace(tensors=tensors), tmp_path)
    assert not list(tmp_path.iterdir())


def rename(file):
    file.move("layers/dense_1/vars/1", "layers/dense_2/vars/1")


def remove(file):
    del file["layers/dense_1/vars/1"]


def swap_axes(file):
    array = file[QUERY][()]
    for name in (QUERY, QUERY.replace("_query", "query")):
        if name in file:
            del file[name]
    file[QUERY] = array.transpose(2, 1, 0).copy()


@pytest.mark.parametrize(
    "change, named",
    [
        (rename, "layers/dense_1/vars/1: missing(.|\n)*layers/dense_2/vars/1: unexpected tensor"),
        (remove, "layers/dense_1/vars/1: missing"),
        (swap_axes, r"query_dense/vars/0: expected shape \[8, 2, 4\], received \[4, 2, 8\]"),
    ],
)
def test_a_wrong_tensor_is_named(preset, change, named):
    with h5py.File(preset / "model.weights.h5", "a") as file:
        change(file)
    with pytest.raises(InputError, match=named):
        keras_nlp_preset.read(preset)
