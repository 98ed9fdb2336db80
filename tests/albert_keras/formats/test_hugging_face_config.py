import json

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import hugging_face
from albert_keras.formats.hugging_face import read_safetensors
from albert_keras.formats.hugging_face_config import (
    family_for,
    read_labels,
    to_albert_config,
    to_values,
)
from albert_keras.formats.hugging_face_tables import ALBERT, BERT as BERT_FAMILY
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import (
    BERT,
    assert_same_weights,
    pretraining_weights,
    task_weights,
    without,
)

BOTH = ("masked_lm", "sentence_order")


@pytest.mark.parametrize(
    "theirs, ours, back",
    [
        ("gelu_new", "gelu", "gelu_new"),
        ("gelu_pytorch_tanh", "gelu", "gelu_new"),
        ("gelu", "gelu_erf", "gelu"),
        ("swish", "silu", "silu"),
    ],
)
def test_activations_keep_their_formula(theirs, ours, back):
    config = to_albert_config(ALBERT, {"hidden_act": theirs}, BOTH)
    assert config.hidden_act == ours
    assert to_values(config, BOTH)["hidden_act"] == back


def test_missing_keys_mean_what_they_mean_to_transformers():
    assert to_albert_config(ALBERT, {}) == AlbertConfig.from_name("albert-xxlarge")
    assert to_albert_config(BERT_FAMILY, {}) == AlbertConfig.from_name("bert-base")


@pytest.mark.parametrize(
    "key, value",
    [
        ("layer_norm_eps", 1e-5),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("auto_map", {"AutoModel": "code.Model"}),
        ("hidden_act", "quick_gelu"),
        ("num_hidden_groups", 13),
        ("sharing", "none"),
    ],
)
def test_another_model_than_ours_is_refused(key, value):
    with pytest.raises(InputError, match=f"`{key}`"):
        to_albert_config(ALBERT, {key: value})


def test_what_means_nothing_to_us_is_kept():
    theirs = {
        "model_type": "albert",
        "architectures": ["AlbertForPreTraining"],
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "classifier_dropout_prob": 0.2,
        "dtype": "float16",
        "net_structure_type": 0,
    }
    config = to_albert_config(ALBERT, theirs, BOTH)
    assert config.foreign_keys.keys() == theirs.keys() - {
        "model_type",
        "architectures",
        "layer_norm_eps",
    }
    assert to_values(config, BOTH).items() >= (theirs | {"dtype": "float32"}).items()


def test_depths_that_are_grouped_otherwise_there_are_refused():
    sizes = {"num_hidden_layers": 18, "num_hidden_groups": 14}
    for convert in (
        lambda: to_albert_config(ALBERT, sizes),
        lambda: family_for(AlbertConfig(**sizes)),
    ):
        with pytest.raises(InputError, match="`num_hidden_groups` must be another number"):
            convert()


@pytest.mark.parametrize(
    "changes, family, groups",
    [
        ({}, "albert", 1),
        ({"sharing": "none"}, "albert", 12),
        ({"sharing": "attention", "num_hidden_groups": 12}, "albert", 12),
        ({"embedding_size": 768}, "albert", 1),
        ({"embedding_size": 768, "sharing": "none"}, "bert", 12),
        (
            {"embedding_size": 768, "sharing": "none", "embedding_projection": "always"},
            "albert",
            12,
        ),
        ({"embedding_size": 768, "sharing": "none", "inner_group_num": 2}, "albert", 12),
    ],
)
def test_the_model_decides_what_it_becomes(changes, family, groups):
    found = family_for(AlbertConfig(**changes))
    assert (found[0].name, found[1]) == (family, groups)


@pytest.mark.parametrize("sharing", ["attention", "ffn"])
def test_sharing_one_part_alone_cannot_be_said(sharing):
    with pytest.raises(InputError, match=f"`sharing`.*{sharing}"):
        family_for(AlbertConfig(sharing=sharing))


def test_labels_are_names_and_not_numbers():
    assert read_labels({"id2label": {"1": "yes", "0": "no"}}, 2) == ("no", "yes")
    assert read_labels({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, 2) == ()
    assert read_labels({}, 2) == ()
    for wrong in ({"1": "yes"}, ["no", "yes"], {"0": "yes"}):
        with pytest.raises(InputError, match="`id2label`"):
            read_labels({"id2label": wrong}, 2)


HEADS = {
    "classification": (3, ("a", "b", "c"), {}, "AlbertForSequenceClassification"),
    "regression": (1, (), {}, "AlbertForSequenceClassification"),
    "spans": (0, (), {}, "AlbertForQuestionAnswering"),
    "tagging": (4, (), BERT, "BertForSequenceClassification"),
    "choice": (0, (), BERT, "BertForSequenceClassification"),
}


@pytest.mark.parametrize("kind", HEADS)
def test_heads_of_tasks_travel(tmp_path, kind):
    number, labels, changes, name = HEADS[kind]
    weights = task_weights(kind, number, labels, **changes)
    hugging_face.write(weights, tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    assert values["architectures"] == [name]
    outputs = number or {"spans": 2, "choice": 1}[kind]
    start = "qa_outputs" if kind == "spans" else "classifier"
    assert len(read_safetensors(tmp_path / "model.safetensors")[f"{start}.bias"]) == outputs
    assert len(values.get("id2label", "ab")) == outputs  # two where nothing is said
    assert_same_weights(hugging_face.read(tmp_path), weights)


@pytest.mark.parametrize(
    "changes, left_out, name",
    [
        ({}, (), "AlbertForPreTraining"),
        ({}, ("cls/seq",), "AlbertForMaskedLM"),
        ({}, ("cls/",), "AlbertModel"),
        (BERT, ("cls/predictions",), "BertForNextSentencePrediction"),
        (BERT, ("cls/",), "BertModel"),
    ],
)
def test_heads_decide_the_class(tmp_path, changes, left_out, name):
    weights = pretraining_weights(**changes)
    weights = without(weights, *left_out) if left_out else weights
    hugging_face.write(weights, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [name]
    prefixed = any(
        tensor.startswith(("albert.", "bert."))
        for tensor in read_safetensors(tmp_path / "model.safetensors")
    )
    assert prefixed == (not name.endswith("Model"))
    assert_same_weights(hugging_face.read(tmp_path), weights)


def test_heads_transformers_does_not_have_together_are_refused(tmp_path):
    for weights in (task_weights("spans_or_none", 0), without(pretraining_weights(), "cls/pred")):
        with pytest.raises(InputError, match="transformers has no albert with the heads"):
            hugging_face.write(weights, tmp_path)
    assert not list(tmp_path.iterdir())
