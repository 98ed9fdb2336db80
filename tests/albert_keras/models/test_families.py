"""ALBERT, BERT, RoBERTa and DistilBERT are one encoder with other fields of its configuration."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.loading import ArrayTensors, load_encoder
from albert_keras.keras_versions import name_of
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.shape import count_weights, encoder_shapes
from tests.albert_keras import numpy_albert
from tests.albert_keras.models.test_encoder import SMALL, features
from tests.albert_keras.numpy_albert import masked_lm_logits, sentence_order_logits
from tests.albert_keras.tasks.small_tasks import build_model

SIZES = SMALL | {"embedding_size": 8, "num_hidden_layers": 2}


def small_config(family, **changes):
    return AlbertConfig.from_name(f"{family}-base", **SIZES | changes)


def scrambled(model):
    numpy_albert.scramble(model)
    return model


@pytest.mark.parametrize(
    "name, changes, left_out, parameters",
    [
        # The weights of the released models of google-research/albert, without and with heads.
        ("albert-base", {}, "heads", 11_683_584),
        ("albert-base", {}, "", 11_813_810),
        ("albert-large", {}, "heads", 17_683_968),
        ("albert-large", {}, "", 17_847_474),
        ("albert-xlarge", {}, "heads", 58_724_864),
        ("albert-xlarge", {}, "", 59_021_490),
        ("albert-xxlarge", {}, "heads", 222_595_584),
        ("albert-xxlarge", {}, "", 223_158_450),
        # ALBERT, table 1, with its vocabulary: BERT has 108, 334 and 1,270 million.
        ("bert-base", {"vocab_size": 30_000}, "heads, pooler", 108e6),
        ("bert-large", {"vocab_size": 30_000}, "heads, pooler", 334e6),
        ("bert-xlarge", {"vocab_size": 30_000}, "heads, pooler", 1271e6),
        # ALBERT, tables 3 and 4. Unshared rows fit only without the pooler, others only with it.
        ("albert-base", {"embedding_size": 64}, "heads", 10e6),
        ("albert-base", {"embedding_size": 768}, "heads", 31e6),
        ("albert-base", {"sharing": "none"}, "heads, pooler", 89e6),
        ("albert-base", {"embedding_size": 768, "sharing": "none"}, "heads, pooler", 108e6),
        ("albert-base", {"sharing": "attention"}, "heads", 64e6),
        ("albert-base", {"sharing": "ffn"}, "heads", 38e6),
        ("albert-base", {"embedding_size": 768, "sharing": "attention"}, "heads", 83e6),
        ("albert-base", {"embedding_size": 768, "sharing": "ffn"}, "heads", 57e6),
        # RoBERTa: facebookresearch/fairseq, examples/roberta; DistilBERT: its table 3.
        ("roberta-base", {}, "heads", 124_054_272),
        ("roberta-base", {}, "sentences", 125e6),
        ("roberta-large", {}, "heads", 354_309_120),
        ("roberta-large", {}, "sentences", 355e6),
        ("distilbert-base", {}, "heads", 66_362_880),
    ],
)
def test_named_models_have_the_published_parameters(name, changes, left_out, parameters):
    config = AlbertConfig.from_name(name, **changes)
    count = count_weights(config, "heads" not in left_out, not left_out)
    found = count.total - (count.pooler if "pooler" in left_out else 0)
    is_rounded = isinstance(parameters, float)
    assert (round(found / 1e6) * 1e6 if is_rounded else found) == parameters


@pytest.mark.parametrize("family", ["albert", "bert", "roberta", "distilbert"])
def test_the_formula_counts_what_is_built(family):
    config = small_config(family, embedding_size=6 if family == "albert" else 8)
    for sentence_head in (True, False):
        model = AlbertForPretraining(config, sentence_head=sentence_head)
        assert model.count_params() == count_weights(config, sentence_head=sentence_head).total
    encoder = AlbertEncoder(config)
    shapes = {name_of(weight): tuple(weight.shape) for weight in encoder.weights}
    assert shapes == encoder_shapes(config)


@pytest.mark.parametrize(
    "family, changes",
    [
        ("albert", {"embedding_size": 6}),
        ("bert", {}),
        ("roberta", {}),
        ("roberta", {"type_vocab_size": 1}),
        ("distilbert", {}),
    ],
)
def test_outputs_are_those_of_numpy_with_any_padding(family, changes):
    config = small_config(family, **changes)
    model = scrambled(AlbertForPretraining(config, sentence_head=family == "albert"))
    positions = np.array([[0, 1, 5], [3, 0, 0], [6, 6, 2], [1, 2, 4]])
    outputs = model(features() | {"masked_lm_positions": positions})
    weights = numpy_albert.weights_by_name(model)
    sequence, pooled, _ = numpy_albert.encode(weights, dict(config), **features())
    masked = np.take_along_axis(sequence, positions[:, :, None], 1)
    expected = {
        "sequence_output": sequence,
        "pooled_output": pooled,
        "masked_lm_logits": masked_lm_logits(weights, dict(config), masked),
    }
    if family == "albert":
        expected["sentence_order_logits"] = sentence_order_logits(weights, pooled)
    for name, values in expected.items():
        np.testing.assert_allclose(outputs[name], values, atol=1e-5, err_msg=name)


def test_the_longest_sequence_of_roberta_uses_the_last_row_of_the_table():
    encoder = AlbertEncoder(small_config("roberta"), dtype="float32")
    assert encoder.embeddings.position_embeddings.shape[0] == 11
    ids = tf.ones([1, 9], tf.int32)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(encoder({"input_ids": ids}, training=True)["sequence_output"] ** 2)
    gradient = tape.gradient(total, encoder.embeddings.position_embeddings)
    assert np.abs(gradient[2:]).sum(1).all()
    assert not gradient[:2].numpy().any()
    with pytest.raises(ValueError, match="must not exceed `max_position_embeddings`"):
        encoder({"input_ids": tf.ones([1, 10], tf.int32)})


def test_only_models_that_classify_have_a_pooler():
    config = small_config("roberta")
    has_pooler = {
        "pretraining": AlbertForPretraining(config, sentence_head=False),
        "sentences": AlbertForPretraining(config, sentence_head=True),
        "classification": build_model("classification", config, 3),
        "choice": build_model("choice", config, 1),
        "tagging": build_model("tagging", config, 3),
        "similarity": build_model("similarity", config, 1),
    }
    assert [name for name, model in has_pooler.items() if model.encoder.pooler is not None] == [
        "sentences",
        "classification",
        "choice",
    ]


def test_the_pooler_of_distilbert_rectifies():
    encoder = scrambled(AlbertEncoder(small_config("distilbert"), pooler=True, dtype="float32"))
    pooled = encoder(features())["pooled_output"].numpy()
    assert (pooled == 0).any() and (pooled > 0).any() and (pooled >= 0).all()
    weights = numpy_albert.weights_by_name(encoder)
    expected = numpy_albert.encode(weights, dict(encoder.config), **features())[1]
    np.testing.assert_allclose(pooled, expected, atol=1e-5)


def test_weights_without_a_pooler_are_loaded_into_a_model_with_one_and_back():
    config = small_config("distilbert")
    trained = scrambled(AlbertForPretraining(config, sentence_head=False))
    classifier = build_model("classification", config, 2)
    report = load_encoder(ArrayTensors.of_model(trained), classifier, "trained")
    assert set(report.new) == {
        "bert/pooler/dense/kernel",
        "bert/pooler/dense/bias",
        "output_weights",
        "output_bias",
    }
    tagger = build_model("tagging", config, 2)
    report = load_encoder(ArrayTensors.of_model(classifier), tagger, "classifier")
    assert report.unused == ("classifier",)
    for name, weight in ArrayTensors.of_model(tagger)._tensors.items():
        if name.startswith("bert/"):
            np.testing.assert_array_equal(weight, ArrayTensors.of_model(trained).read(name))
