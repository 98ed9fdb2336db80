"""Checkpoints of google-research/albert and google-research/bert, with their names and axes."""

import json
import re

import numpy as np
import pytest

from albert_keras.formats import google_bert
from albert_keras.formats.detection import detect
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.tensors import write_tensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import (
    assert_same_weights,
    pretraining_weights,
)

BERT_VALUES = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 8,
    "initializer_range": 0.02,
    "intermediate_size": 12,
    "max_position_embeddings": 9,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "type_vocab_size": 2,
    "vocab_size": 50,
}
BERT = {
    "embedding_size": 8,
    "num_hidden_layers": 3,
    "sharing": "none",
    "hidden_act": "gelu_erf",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "foreign_keys": {"directionality": "bidi"},
}
#: Names within a layer, ours -> those of BERT.
PARTS = {
    "attention_1/self/query": "attention/self/query",
    "attention_1/self/key": "attention/self/key",
    "attention_1/self/value": "attention/self/value",
    "attention_1/output/dense": "attention/output/dense",
    "LayerNorm": "attention/output/LayerNorm",
    "ffn_1/intermediate/dense": "intermediate/dense",
    "ffn_1/intermediate/output/dense": "output/dense",
    "LayerNorm_1": "output/LayerNorm",
}


def write_release(folder, weights, **more):
    """Writes what google-research/albert would have: returns the prefix."""
    folder.mkdir(exist_ok=True)
    values = weights.albert_config.to_dict()
    del values["sharing"]
    values.pop("foreign_keys", None)
    (folder / "albert_config.json").write_text(json.dumps(values | more))
    write_tensors(folder / "model.ckpt-best", weights.arrays)
    return folder / "model.ckpt-best"


def opened(path):
    return open_weights(path).in_memory()


def test_a_folder_with_two_checkpoints_is_refused(tmp_path):
    prefix = write_release(tmp_path, pretraining_weights())
    write_tensors(prefix.with_name("model.ckpt-5"), {"x": np.zeros(1, np.float32)})
    with pytest.raises(InputError, match="Choose one: .*model.ckpt-5, .*model.ckpt-best"):
        opened(prefix.parent)


def name_in_bert(name):
    match = re.fullmatch(r"bert/encoder/transformer/group_(\d)/inner_group_0/(.*)/(\w+)", name)
    return f"bert/encoder/layer_{match[1]}/{PARTS[match[2]]}/{match[3]}" if match else name


def test_every_number_of_a_bert_arrives_and_is_written_back(tmp_path):
    ours = pretraining_weights(**BERT)
    theirs = {name_in_bert(name): array for name, array in ours.arrays.items()}
    state = {f"{name}/adam_v": array for name, array in theirs.items()}
    write_tensors(tmp_path / "bert_model.ckpt", theirs | state | {"global_step": np.array(3)})
    (tmp_path / "bert_config.json").write_text(json.dumps(BERT_VALUES))
    assert detect(tmp_path).format == "google-bert"
    weights = google_bert.read(tmp_path / "bert_model.ckpt")
    assert_same_weights(weights, ours)
    folder = tmp_path / "back"
    folder.mkdir()
    google_bert.write(weights, folder)
    assert {path.name for path in folder.iterdir()} == {
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
    }
    assert_same_weights(google_bert.read(folder), ours)


def test_missing_keys_take_the_defaults_of_bert(tmp_path):
    shape = {"vocab_size": 7, "hidden_size": 768, "num_hidden_layers": 12}
    shape |= {"num_attention_heads": 12, "intermediate_size": 3072}
    (tmp_path / "bert_config.json").write_text(json.dumps(shape))
    write_tensors(tmp_path / "bert_model.ckpt", {"x": np.zeros(1, np.float32)})
    with pytest.raises(InputError, match=r"token_type_embeddings \[16, 768\]"):
        google_bert.read(tmp_path)
