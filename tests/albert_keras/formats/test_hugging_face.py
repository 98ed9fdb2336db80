import json

import numpy as np
import pytest

from albert_keras.formats import hugging_face
from albert_keras.formats.detection import find
from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats import numpy_transformers
from tests.albert_keras.formats.random_weights import (
    BERT,
    DISTILBERT,
    ROBERTA,
    assert_same_weights,
    pretraining_model,
    pretraining_weights,
)

CASES = {
    "albert": {},
    "equal-sizes": {"embedding_size": 8},
    "equal-sizes-projected": {"embedding_size": 8, "embedding_projection": "always"},
    "groups": {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "relu": {"hidden_act": "relu"},
    "bert": BERT,
    "roberta": ROBERTA,
    "roberta-two-types": ROBERTA | {"type_vocab_size": 2, "position_offset": 1},
    "distilbert": DISTILBERT,
}
#: RoBERTa and DistilBERT are compared with numbers of transformers.
FORMULAS = [name for name in CASES if not name.startswith(("roberta", "distilbert"))]
MASKS = [[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1]]


@pytest.fixture
def albert():
    return pretraining_weights()


@pytest.fixture
def source(albert, tmp_path):
    """Returns a folder of transformers with an ALBERT; tests change it."""
    folder = tmp_path / "source"
    folder.mkdir()
    hugging_face.write(albert, folder)
    return folder


def tensors_of(folder):
    return read_safetensors(folder / "model.safetensors")


def values_of(folder):
    return json.loads((folder / "config.json").read_text())


def change(folder, tensors=None, **values):
    """Changes what a folder holds: all its tensors, and some values of its configuration."""
    if tensors is not None:
        write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(values_of(folder) | values))


@pytest.mark.parametrize("case", FORMULAS)
def test_outputs_are_those_of_their_formulas_with_their_names(tmp_path, case):
    weights = pretraining_weights(**CASES[case])
    hugging_face.write(weights, tmp_path)
    ids, mask = np.random.default_rng(0).integers(2, 50, (3, 7)), np.array(MASKS)
    segments = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3)
    theirs = numpy_transformers.predict(
        tensors_of(tmp_path), values_of(tmp_path), ids, mask, segments
    )
    ours = pretraining_model(weights)(
        {
            "input_ids": ids,
            "input_mask": mask,
            "segment_ids": segments,
            "masked_lm_positions": np.tile(np.arange(7), (3, 1)),
        }
    )
    np.testing.assert_allclose(ours["masked_lm_logits"], theirs[0], atol=1e-5)
    np.testing.assert_allclose(ours["sentence_order_logits"], theirs[1], atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_there_and_back_is_the_same_to_the_bit(tmp_path, case):
    weights = pretraining_weights(**CASES[case])
    hugging_face.write(weights, tmp_path)
    assert find(tmp_path).kind == "hugging-face"
    assert_same_weights(hugging_face.read(tmp_path), weights)


@pytest.mark.parametrize("old", ["gamma-and-beta", "no-prefix", "buffers", "copies", "copies-only"])
def test_names_of_other_days_are_read(albert, source, old):
    tensors = tensors_of(source)
    words, bias = "albert.embeddings.word_embeddings.weight", "predictions.bias"
    if old == "gamma-and-beta":
        for part, name in (("weight", "gamma"), ("bias", "beta")):
            for scope in ("albert.embeddings.LayerNorm", "predictions.LayerNorm"):
                tensors[f"{scope}.{name}"] = tensors.pop(f"{scope}.{part}")
    elif old == "no-prefix":
        tensors = {name.removeprefix("albert."): array for name, array in tensors.items()}
    elif old == "buffers":
        tensors["albert.embeddings.position_ids"] = np.arange(9)[None]
        tensors["albert.embeddings.token_type_ids"] = np.zeros((1, 9), np.int64)
    else:
        take = tensors.pop if old == "copies-only" else tensors.get
        tensors["predictions.decoder.weight"] = take(words)
        tensors["predictions.decoder.bias"] = take(bias)
    change(source, tensors)
    assert_same_weights(hugging_face.read(source), albert)


@pytest.mark.parametrize(
    "name, changed",
    [
        ("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight"),
        ("predictions.decoder.bias", "predictions.bias"),
    ],
)
def test_a_copy_that_differs_is_refused(source, name, changed):
    tensors = tensors_of(source)
    tensors[name] = tensors[changed] + np.float32(1e-6)
    change(source, tensors)
    with pytest.raises(InputError, match=f"{name} .* must equal {changed}"):
        hugging_face.read(source)


def test_an_output_layer_of_its_own_is_refused_where_it_is_missing(albert, source):
    change(source, tie_word_embeddings=False)
    with pytest.raises(InputError, match="predictions.decoder.weight.*tie_word_embeddings"):
        hugging_face.read(source)
    tensors = tensors_of(source)
    tensors["predictions.decoder.weight"] = tensors["albert.embeddings.word_embeddings.weight"]
    change(source, tensors)
    assert hugging_face.read(source).heads == albert.heads


QUERY = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.query"


@pytest.mark.parametrize("fault", ["renamed", "missing", "cut", "extra"])
def test_a_tensor_that_does_not_fit_is_named(source, fault):
    tensors, name = tensors_of(source), f"{QUERY}.weight"
    if fault == "renamed":
        tensors[f"{name}x"] = tensors.pop(name)
    elif fault == "missing":
        del tensors[name]
    elif fault == "cut":
        tensors[name] = tensors[name][:, :5]
    else:
        tensors[f"{name}2"] = tensors[name]
    change(source, tensors)
    with pytest.raises(InputError, match=name):
        hugging_face.read(source)


def test_one_tensor_under_two_names_is_refused(source):
    tensors = tensors_of(source)
    name = "embeddings.LayerNorm.weight"
    change(source, tensors | {name: tensors[f"albert.{name}"]})
    with pytest.raises(InputError, match=f"albert.{name} twice"):
        hugging_face.read(source)


def test_a_pooler_no_head_wants_is_zeros_and_is_left_out_again(source, tmp_path, caplog):
    tensors = tensors_of(source)
    starts = ("albert.pooler", "sop_classifier")
    kept = {name: array for name, array in tensors.items() if not name.startswith(starts)}
    change(source, kept, architectures=["AlbertForMaskedLM"])
    weights = hugging_face.read(source)
    assert "no pooler" in caplog.text
    assert not weights.tensors["bert/pooler/dense/kernel"].any()
    target = tmp_path / "target"
    target.mkdir()
    hugging_face.write(weights, target)
    assert tensors_of(target).keys() == kept.keys()
    change(source, {n: a for n, a in tensors.items() if not n.startswith("albert.pooler")})
    with pytest.raises(InputError, match="albert.pooler.weight: missing"):
        hugging_face.read(source)
