"""Each format gives back the model that it was given, and refuses by name what it cannot hold."""

import functools
import json

import pytest

from albert_keras.formats.detection import detect
from albert_keras.formats.hugging_face import read_safetensors
from albert_keras.formats.open_weights import format_module, open_weights
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import (
    BERT,
    DISTILBERT,
    GROUPS,
    ROBERTA,
    assert_same_weights,
    pretraining_weights,
    task_weights,
    with_shape,
    without,
)

CONFIGS = {"google": "albert_config.json", "google-bert": "bert_config.json"}
FOREIGN = {"foreign_keys": {"net_structure_type": 0}}
PROJECTED = {"embedding_size": 8, "embedding_projection": "always"}
#: Keys of ours that are in no file of google-research/albert.
OURS_ALONE = dict.fromkeys(("sharing", "foreign_keys", "embedding_projection"))
LABELS = {"0": "a", "1": "b", "2": "c"}
#: Names in transformers.
WORDS, OF_CLASSES = "embeddings.word_embeddings.weight", "classifier.bias"
PRETRAINING, PROJECTION = "AlbertForPreTraining", "encoder.embedding_hidden_mapping_in.weight"


def encoder(**changes):
    return without(pretraining_weights(**changes), "cls/")


def choice(class_name, **changes):
    return task_weights("choice", 1, foreign_keys={"architectures": [class_name]}, **changes)


#: Format, weights, and values of its configuration, None for keys that are not there; with
#: transformers the name of one tensor.
MODELS = [
    ("google", pretraining_weights(**GROUPS, **FOREIGN), {"net_structure_type": 0} | OURS_ALONE),
    ("google", task_weights("classification", 3, **GROUPS), {"hidden_act": "gelu"}),
    ("google", task_weights("spans", 0, **GROUPS), {}),
    ("google", task_weights("spans_or_none", 0, **GROUPS), {}),
    ("google", pretraining_weights(sharing="none"), {"num_hidden_groups": 2}),
    ("google-bert", pretraining_weights(**BERT), {"hidden_act": "gelu"}),
    ("google-bert", pretraining_weights(**BERT | {"hidden_act": "relu"}), {"hidden_act": "relu"}),
    ("keras-nlp", encoder(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1), {}),
    ("keras-nlp", encoder(**GROUPS | {"embedding_size": 8}), {}),
    ("keras-nlp", encoder(**GROUPS | PROJECTED), {}),
    *(
        ("hugging-face", weights, {"architectures": [name]} | values, tensor)
        for weights, name, values, tensor in (
            (
                task_weights("classification", 3, ("a", "b", "c")),
                "AlbertForSequenceClassification",
                {"id2label": LABELS},
                OF_CLASSES,
            ),
            (
                task_weights("regression", 1),
                "AlbertForSequenceClassification",
                {"id2label": {"0": "LABEL_0"}},
                OF_CLASSES,
            ),
            (task_weights("spans", 0), "AlbertForQuestionAnswering", {}, "qa_outputs.bias"),
            (
                task_weights("tagging", 4, **BERT),
                "BertForSequenceClassification",
                {},
                OF_CLASSES,
            ),
            (
                choice("RobertaForMultipleChoice", **ROBERTA),
                "RobertaForMultipleChoice",
                {},
                "roberta.pooler.dense.weight",
            ),
            (
                choice("DistilBertForMultipleChoice", **DISTILBERT),
                "DistilBertForMultipleChoice",
                {},
                "pre_classifier.weight",
            ),
            (
                without(pretraining_weights(), "cls/seq"),
                "AlbertForMaskedLM",
                {},
                f"albert.{WORDS}",
            ),
            (encoder(), "AlbertModel", {}, WORDS),
            # theirs always project the embeddings
            (pretraining_weights(embedding_size=8), PRETRAINING, {}, f"albert.{PROJECTION}"),
            (pretraining_weights(**PROJECTED), PRETRAINING, {}, f"albert.{PROJECTION}"),
            (
                pretraining_weights(**GROUPS | {"hidden_act": "relu"}),
                PRETRAINING,
                {"num_hidden_groups": 2},
                None,
            ),
            (
                without(pretraining_weights(**BERT), "cls/predictions"),
                "BertForNextSentencePrediction",
                {},
                f"bert.{WORDS}",
            ),
            # Without one RobertaModel would get a random pooler.
            (encoder(**ROBERTA), "RobertaModel", {}, "pooler.dense.weight"),
            (encoder(**DISTILBERT), "DistilBertModel", {}, WORDS),
        )
    ),
]


@pytest.mark.parametrize("name, weights, values, tensor", [(*row, None)[:4] for row in MODELS])
def test_a_model_comes_back_to_the_bit(name, weights, values, tensor, tmp_path):
    format_module(name).write(weights, tmp_path)
    assert detect(tmp_path).format == name
    written = json.loads((tmp_path / CONFIGS.get(name, "config.json")).read_text())
    assert {key: written.get(key) for key in values} == values
    if tensor is not None:
        assert tensor in read_safetensors(tmp_path / "model.safetensors")
    if name == "google" and weights.albert_config.sharing == "none":  # a group for each depth
        weights = with_shape(weights, sharing="all", num_hidden_groups=2)
    assert_same_weights(open_weights(tmp_path).in_memory(), weights)


ROTARY = {"position_embedding": "rotary"}, '`position_embedding` must be "absolute"'
REFUSED = [
    ("google", {"sharing": "attention"}, "`sharing` must be .*'attention'"),
    ("google", {"hidden_act": "gelu_erf"}, "`hidden_act` must be .*'gelu_erf'"),
    ("google", {"sharing": "none", "num_hidden_layers": 22}, "skip a group"),
    ("google", PROJECTED, '`embedding_projection` must be "auto"'),
    ("google-bert", BERT | {"sharing": "all"}, "`sharing` must be \"none\". Received: 'all'"),
    ("google-bert", BERT | {"embedding_size": 4}, "`embedding_size` must be 8. Received: 4"),
    ("google-bert", BERT | {"hidden_act": "gelu"}, "`hidden_act` must be"),
    ("keras-nlp", {"sharing": "attention"}, "`sharing`"),
    ("keras-nlp", {"hidden_dropout_prob": 0.1}, "`hidden_dropout_prob`"),
    ("keras-nlp", GROUPS | {"num_hidden_groups": 3}, "`num_hidden_groups`"),
    ("hugging-face", {"sharing": "attention"}, "`sharing`.*attention"),
    ("hugging-face", ROBERTA | {"pooler": "always"}, "roberta .*`pooler` must be"),
    ("hugging-face", DISTILBERT | {"pooler_activation": "tanh"}, '`pooler_activation` must be "re'),
    ("hugging-face", ROBERTA | {"sharing": "all"}, "`position_offset` must be 0"),
    ("hugging-face", BERT | {"pooler": "on_demand"}, '`pooler` must be "always"'),
    *((name, *ROTARY) for name in ("google", "google-bert", "keras-nlp", "hugging-face")),
]


@pytest.mark.parametrize(
    "name, make, message",
    [(name, functools.partial(pretraining_weights, **row), says) for name, row, says in REFUSED]
    + [
        ("hugging-face", make, "transformers has no albert with the heads")
        for make in (
            functools.partial(task_weights, "spans_or_none", 0),
            lambda: without(pretraining_weights(), "cls/pred"),
        )
    ],
)
def test_what_a_format_cannot_hold_is_named_and_nothing_is_written(name, make, message, tmp_path):
    with pytest.raises(InputError, match=message):
        format_module(name).write(make(), tmp_path)
    assert not list(tmp_path.iterdir())
