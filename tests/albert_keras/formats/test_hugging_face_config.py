"""Which class and which `config.json` of transformers belongs to a model of ours, and back."""

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats.hugging_face_config import (
    family_for,
    family_of,
    read_labels,
    to_albert_config,
    to_values,
)
from albert_keras.formats.hugging_face_tables import FAMILIES
from data_pipeline.errors import InputError

BOTH = ("masked_lm", "sentence_order")
SIZES = {"vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 12}
NAMES = {"distilbert": ("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim")}


def sizes_of(family, **others):
    """Returns a shape with the keys of a family."""
    return dict(zip(NAMES.get(family, SIZES), SIZES.values(), strict=True)) | others


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
    config = to_albert_config(FAMILIES["albert"], sizes_of("albert", hidden_act=theirs), BOTH)
    assert config.hidden_act == ours
    assert to_values(config, BOTH)["hidden_act"] == back


def test_missing_keys_mean_what_they_mean_to_transformers():
    roberta = {"type_vocab_size": 2, "layer_norm_epsilon": 1e-12, "max_position_embeddings": 510}
    for family, name, changes in (
        ("albert", "albert-xxlarge", {"embedding_size": 128}),
        ("bert", "bert-base", {"embedding_size": 8}),
        ("roberta", "roberta-base", roberta | {"embedding_size": 8}),
        ("distilbert", "distilbert-base", {"embedding_size": 8}),
    ):
        expected = AlbertConfig.from_name(name, **SIZES | changes)
        assert to_albert_config(FAMILIES[family], sizes_of(family)) == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_a_shape_is_required(family):
    values = sizes_of(family)
    for name in values:
        rest = {key: value for key, value in values.items() if key != name}
        with pytest.raises(InputError, match=f"define the shape of a model. Missing: {name}. Rec"):
            to_albert_config(FAMILIES[family], rest)


@pytest.mark.parametrize(
    "family, key, value",
    [
        ("distilbert", "layer_norm_eps", 1e-5),
        ("albert", "position_embedding_type", "relative_key"),
        ("albert", "auto_map", {"AutoModel": "code.Model"}),
        ("albert", "hidden_act", "quick_gelu"),
        ("albert", "sharing", "none"),
        ("roberta", "pad_token_id", None),
        ("roberta", "max_position_embeddings", 2),
        ("roberta", "hidden_act", "gelu_new"),  # its head has the other form in any case
        ("distilbert", "hidden_size", 768),
    ],
)
def test_a_value_that_cannot_be_expressed_is_named(family, key, value):
    with pytest.raises(InputError, match=f"`{key}`"):
        to_albert_config(FAMILIES[family], sizes_of(family, **{key: value}), ("masked_lm",))


def test_another_kind_of_model_is_named():
    with pytest.raises(InputError, match="albert, bert, roberta, distilbert.*'xlm-roberta'"):
        family_of({"model_type": "xlm-roberta"})


def test_what_means_nothing_to_us_is_kept():
    theirs = SIZES | {
        "model_type": "albert",
        "architectures": ["AlbertForPreTraining"],
        "layer_norm_eps": 1e-5,
        "pad_token_id": 0,
        "classifier_dropout_prob": 0.2,
        "dtype": "float16",
        "net_structure_type": 0,
    }
    config = to_albert_config(FAMILIES["albert"], theirs, BOTH)
    known = {"model_type", "architectures", "layer_norm_eps", *SIZES}
    assert config.foreign_keys.keys() == theirs.keys() - known
    assert config.layer_norm_epsilon == 1e-5
    assert to_values(config, BOTH).items() >= (theirs | {"dtype": "float32"}).items()


def test_depths_that_are_grouped_otherwise_there_are_refused():
    sizes = {"num_hidden_layers": 18, "num_hidden_groups": 14}
    for convert in (
        lambda: to_albert_config(FAMILIES["albert"], sizes_of("albert", **sizes)),
        lambda: family_for(AlbertConfig(**sizes)),
    ):
        with pytest.raises(InputError, match="`num_hidden_groups` must be another number"):
            convert()


@pytest.mark.parametrize(
    "changes, family, groups",
    [
        ({"sharing": "none"}, "albert", 12),
        ({"sharing": "attention", "num_hidden_groups": 12}, "albert", 12),
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


def test_labels_are_names_and_not_numbers():
    assert read_labels({"id2label": {"1": "yes", "0": "no"}}, 2) == ("no", "yes")
    assert read_labels({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, 2) == ()
    assert read_labels({}, 2) == ()
    odd = ({"0": name, "1": "yes"} for name in ("\ud800", " ", None, {"a": 1}))
    for wrong in ({"1": "yes"}, ["no", "yes"], {"0": "yes"}, *odd):
        with pytest.raises(InputError, match="`id2label`"):
            read_labels({"id2label": wrong}, 2)


@pytest.mark.parametrize("ids", [{"a": 1, "b": 0, "c": 2}, {"a": 1, "b": 2, "c": 0}, {"a": 0}])
def test_two_statements_about_labels_must_agree(ids):
    names = {"id2label": {"0": "a", "1": "b", "2": "c"}}
    with pytest.raises(InputError, match="`label2id` must be the inverse of `id2label`"):
        read_labels(names | {"label2id": ids}, 3)
    kept = {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}  # of before the labels were named
    for agreed in ({"a": 0, "b": 1, "c": 2}, kept):
        assert read_labels(names | {"label2id": agreed}, 3) == ("a", "b", "c")
