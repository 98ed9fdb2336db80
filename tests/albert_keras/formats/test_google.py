"""Checkpoints of google-research/albert and google-research/bert, with their names and axes."""

import functools
import json
import re

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import google_bert, google_checkpoint
from albert_keras.formats.detection import detect
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.tensors import write_tensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import (
    GROUPS,
    SMALL,
    assert_same_weights,
    pretraining_weights,
    task_weights,
    with_shape,
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
HEADS = {
    "pretraining": pretraining_weights,
    "classifier": functools.partial(task_weights, "classification", 3),
    "spans": functools.partial(task_weights, "spans", 0),
    "spans_or_none": functools.partial(task_weights, "spans_or_none", 0),
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


@pytest.mark.parametrize("head", HEADS)
def test_every_number_of_an_albert_arrives_and_is_written_back(tmp_path, head):
    weights = HEADS[head](**GROUPS, foreign_keys={"net_structure_type": 0})
    found = opened(write_release(tmp_path / "theirs", weights, net_structure_type=0))
    assert_same_weights(found, weights)
    folder = tmp_path / "back"
    folder.mkdir()
    google_checkpoint.write(weights, folder, {})
    assert sorted(path.name for path in folder.iterdir()) == [
        "albert_config.json",
        "model.ckpt-best.data-00000-of-00001",
        "model.ckpt-best.index",
    ]
    values = json.loads((folder / "albert_config.json").read_text())
    assert values["net_structure_type"] == 0 and values["hidden_act"] == "gelu"
    assert not values.keys() & {"sharing", "foreign_keys", "embedding_projection"}
    assert_same_weights(opened(folder), weights)


def test_the_first_generation_of_chinese_albert_is_named(tmp_path):
    tensors = ("word_embeddings", "word_embeddings_2")
    tensors = {f"bert/embeddings/{name}": np.zeros((2, 2), np.float32) for name in tensors}
    write_tensors(tmp_path / "albert_model.ckpt", tensors)
    (tmp_path / "albert_config_tiny.json").write_text("{}")
    with pytest.raises(InputError, match="first generation of Chinese ALBERT .* `_google`"):
        open_weights(tmp_path)


def test_a_folder_with_two_checkpoints_is_refused(tmp_path):
    prefix = write_release(tmp_path, pretraining_weights())
    write_tensors(prefix.with_name("model.ckpt-5"), {"x": np.zeros(1, np.float32)})
    with pytest.raises(InputError, match="Choose one: .*model.ckpt-5, .*model.ckpt-best"):
        opened(prefix.parent)


def test_a_model_without_sharing_has_a_group_for_each_depth(tmp_path):
    weights = pretraining_weights(num_hidden_layers=4, sharing="none")
    google_checkpoint.write(weights, tmp_path, {})
    returned = opened(tmp_path)
    assert_same_weights(returned, with_shape(weights, sharing="all", num_hidden_groups=4))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sharing": "attention"}, "`sharing` must be .*'attention'"),
        ({"hidden_act": "gelu_erf"}, "`hidden_act` must be .*'gelu_erf'"),
        ({"sharing": "none", "num_hidden_layers": 22, "inner_group_num": 1}, "skip a group"),
        (
            {"embedding_size": 8, "embedding_projection": "always"},
            '`embedding_projection` must be "auto"',
        ),
    ],
)
def test_what_the_reference_cannot_have_is_not_written(change, message):
    with pytest.raises(InputError, match=message):
        google_checkpoint.reference_config(AlbertConfig(**SMALL | change))


def test_groups_that_the_reference_rounds_otherwise_are_warned_of(tmp_path, caplog):
    opened(write_release(tmp_path, pretraining_weights(num_hidden_layers=22, num_hidden_groups=22)))
    assert "22 layers in 22 groups, the reference uses different groups" in caplog.text


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
    google_bert.write(weights, folder, {})
    assert {path.name for path in folder.iterdir()} == {
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
    }
    assert_same_weights(google_bert.read(folder), ours)


@pytest.mark.parametrize("activation", ["gelu", "gelu_erf", "relu"])
def test_either_form_of_gelu_comes_back(tmp_path, activation):
    google_bert.write(pretraining_weights(**BERT | {"hidden_act": activation}), tmp_path, {})
    values = json.loads((tmp_path / "bert_config.json").read_text())
    assert values["hidden_act"] == activation.removesuffix("_erf")
    assert google_bert.read(tmp_path).albert_config.hidden_act == activation


def test_missing_keys_take_the_defaults_of_bert(tmp_path):
    shape = {"vocab_size": 7, "hidden_size": 768, "num_hidden_layers": 12}
    shape |= {"num_attention_heads": 12, "intermediate_size": 3072}
    (tmp_path / "bert_config.json").write_text(json.dumps(shape))
    write_tensors(tmp_path / "bert_model.ckpt", {"x": np.zeros(1, np.float32)})
    with pytest.raises(InputError, match=r"token_type_embeddings \[16, 768\]"):
        google_bert.read(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sharing": "all"}, "`sharing` must be \"none\". Received: 'all'"),
        ({"embedding_size": 4}, "`embedding_size` must be 8. Received: 4"),
        ({"hidden_act": "silu"}, "`hidden_act` must be"),
    ],
)
def test_what_bert_cannot_be_is_not_written(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        google_bert.write(pretraining_weights(**BERT | change), tmp_path, {})
    assert not list(tmp_path.iterdir())
