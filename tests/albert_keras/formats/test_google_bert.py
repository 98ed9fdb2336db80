import json
import re

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import google_bert
from albert_keras.formats.detection import detect
from albert_keras.runs.tensors import write_tensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.reference_models import (
    HEADS,
    assert_same_tensors,
    model_weights as weights_of,
    tensors_of,
)

VALUES = {
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
CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=8,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
    hidden_act="gelu_erf",
    hidden_dropout_prob=0.1,
    attention_probs_dropout_prob=0.1,
    sharing="none",
    foreign_keys={"directionality": "bidi"},
)
SIZES = {"V": 50, "E": 8, "H": 8, "I": 12, "P": 9, "T": 2, "D": 16, "C": 3, "1": 1, "2": 2}
OUTSIDE = """
bert/embeddings/word_embeddings VH
bert/embeddings/token_type_embeddings TH
bert/embeddings/position_embeddings PH
bert/embeddings/LayerNorm/beta H
bert/embeddings/LayerNorm/gamma H
bert/pooler/dense/kernel HH
bert/pooler/dense/bias H
"""
LAYER = """
attention/self/query/kernel HH
attention/self/query/bias H
attention/self/key/kernel HH
attention/self/key/bias H
attention/self/value/kernel HH
attention/self/value/bias H
attention/output/dense/kernel HH
attention/output/dense/bias H
attention/output/LayerNorm/beta H
attention/output/LayerNorm/gamma H
intermediate/dense/kernel HI
intermediate/dense/bias I
output/dense/kernel IH
output/dense/bias H
output/LayerNorm/beta H
output/LayerNorm/gamma H
"""
#: Theirs -> ours, within a layer.
PARTS = {
    "attention/self": "attention_1/self",
    "attention/output/dense": "attention_1/output/dense",
    "attention/output/LayerNorm": "LayerNorm",
    "intermediate/dense": "ffn_1/intermediate/dense",
    "output/dense": "ffn_1/intermediate/output/dense",
    "output/LayerNorm": "LayerNorm_1",
}


def bert_tensors(*heads):
    tensors = tensors_of(OUTSIDE, sizes=SIZES)
    for layer in range(3):
        tensors |= tensors_of(LAYER, f"bert/encoder/layer_{layer}/", SIZES)
    for head in heads:
        tensors |= tensors_of(HEADS[head], sizes=SIZES)
    return tensors


def our_name(name):
    match = re.fullmatch(r"bert/encoder/layer_(\d)/(.*)", name)
    if match is None:
        return name
    part = next(part for part in PARTS if match[2].startswith(f"{part}/"))
    block = f"bert/encoder/transformer/group_{match[1]}/inner_group_0"
    return f"{block}/{PARTS[part]}{match[2].removeprefix(part)}"


@pytest.fixture
def release(tmp_path):
    tensors = bert_tensors("masked_lm", "sentence_order")
    state = {f"{name}/adam_v": array for name, array in tensors.items()}
    write_tensors(tmp_path / "bert_model.ckpt", tensors | state | {"global_step": np.array(3)})
    (tmp_path / "bert_config.json").write_text(json.dumps(VALUES))
    return tmp_path, tensors


def test_every_number_arrives(release):
    folder, tensors = release
    assert detect(folder).format == "google-bert"
    weights = google_bert.read(folder / "bert_model.ckpt")
    assert_same_tensors(weights.tensors, {our_name(name): array for name, array in tensors.items()})
    assert weights.config == CONFIG
    assert weights.heads == ("masked_lm", "sentence_order")


def test_there_and_back_is_the_same_model(release, tmp_path):
    weights = google_bert.read(release[0])
    folder = tmp_path / "back"
    folder.mkdir()
    google_bert.write(weights, folder)
    assert {path.name for path in folder.iterdir()} == {
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
    }
    returned = google_bert.read(folder)
    assert_same_tensors(returned.tensors, weights.tensors)
    assert returned.config == weights.config


@pytest.mark.parametrize("activation", ["gelu", "gelu_erf", "relu", "tanh", "linear"])
def test_either_form_of_gelu_comes_back(tmp_path, activation):
    config = CONFIG.model_copy(update={"hidden_act": activation})
    google_bert.write(weights_of(config=config, groups=3, inner=1, E=8), tmp_path)
    values = json.loads((tmp_path / "bert_config.json").read_text())
    assert values["hidden_act"] == activation.removesuffix("_erf")
    assert google_bert.read(tmp_path).config.hidden_act == activation


def test_missing_keys_take_the_defaults_of_bert(tmp_path):
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 7}')
    write_tensors(tmp_path / "bert_model.ckpt", {"x": np.zeros(1, np.float32)})
    with pytest.raises(InputError, match=r"token_type_embeddings \[16, 768\]"):
        google_bert.read(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sharing": "all"}, "`sharing` must be \"none\". Received: 'all'"),
        ({"inner_group_num": 2}, "`inner_group_num` must be 1. Received: 2"),
        ({"embedding_size": 4}, "`embedding_size` must be 8. Received: 4"),
        ({"embedding_projection": "always"}, '`embedding_projection` must be "auto"'),
        ({"hidden_act": "silu"}, "`hidden_act` must be"),
    ],
)
def test_what_bert_cannot_be_is_not_written(tmp_path, change, message):
    config = AlbertConfig(**(CONFIG.to_dict() | change))
    with pytest.raises(InputError, match=message):
        google_bert.write(weights_of(config=config), tmp_path)
    assert not list(tmp_path.iterdir())
