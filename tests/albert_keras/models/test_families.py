"""ALBERT, BERT, RoBERTa and DistilBERT are one encoder with other fields of its configuration."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.loading import ArrayTensors, load_encoder
from albert_keras.formats.model_weights import encoder_shapes
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.weight_count import count_weights
from tests.albert_keras import numpy_albert
from tests.albert_keras.numpy_albert import masked_lm_logits
from tests.albert_keras.tasks.small_tasks import build_model

SMALL = {
    "vocab_size": 50,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 9,
}
FAMILIES = ("bert", "roberta", "distilbert")


def small_config(family, **changes):
    return AlbertConfig.from_name(f"{family}-base", embedding_size=8, **SMALL | changes)


def scrambled(model):
    numpy_albert.scramble(model)
    return model


def inputs():
    rng = np.random.default_rng(0)
    mask = np.array([[1] * 7, [1] * 4 + [0] * 3, [0] * 2 + [1] * 5])
    return {
        "input_ids": rng.integers(0, 50, (3, 7)),
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, (3, 7)),
    }


@pytest.mark.parametrize(
    "name, encoder_parameters, millions",
    [
        # ALBERT, table 1: 12, 18, 60 and 235 million. Of its two largest models the released
        # checkpoints have 58.7 and 222.6 million, which is what its table of sizes gives.
        ("albert-base", 11_683_584, 12),
        # RoBERTa: facebookresearch/fairseq, examples/roberta; DistilBERT: its table 3.
        ("roberta-base", 124_054_272, 124),
        ("roberta-large", 354_309_120, 354),
        ("distilbert-base", 66_362_880, 66),
    ],
)
def test_named_models_have_the_parameters_of_the_papers(name, encoder_parameters, millions):
    # A range of 0 builds the same weights and saves sampling them.
    config = AlbertConfig.from_name(name, initializer_range=0)
    counted = count_weights(config, masked_lm_head=False, sentence_head=False).total
    assert counted == encoder_parameters
    assert round(encoder_parameters / 1e6) == millions


@pytest.mark.parametrize(
    "name, millions", [("bert-base", 108), ("bert-large", 334), ("bert-xlarge", 1271)]
)
def test_berts_have_the_parameters_of_table_1_of_albert(name, millions):
    # With ALBERT's vocabulary and without the pooler; the table rounds 1,271 to 1,270.
    config = AlbertConfig.from_name(name, vocab_size=30_000)
    counted = count_weights(config, masked_lm_head=False, sentence_head=False)
    assert round((counted.total - counted.pooler) / 1e6) == millions


@pytest.mark.parametrize("name, millions", [("roberta-base", 125), ("roberta-large", 355)])
def test_pre_trained_robertas_have_the_published_parameters(name, millions):
    config = AlbertConfig.from_name(name)
    assert round(count_weights(config, sentence_head=False).total / 1e6) == millions


@pytest.mark.parametrize("name", AlbertConfig.names())
def test_the_formula_counts_what_is_built(name):
    small = SMALL | {"initializer_range": 0}
    config = AlbertConfig.from_name(name, **small)
    for sentence_head in (True, False):
        model = AlbertForPretraining(config, sentence_head=sentence_head)
        assert model.count_params() == count_weights(config, sentence_head=sentence_head).total
    encoder = AlbertEncoder(config)
    shapes = {weight.name[:-2]: tuple(weight.shape) for weight in encoder.weights}
    assert shapes == encoder_shapes(config)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("changes", [{}, {"type_vocab_size": 1}])
def test_outputs_are_those_of_numpy_with_padding_left_and_right(family, changes):
    config = small_config(family, **changes)
    model = scrambled(AlbertForPretraining(config, sentence_head=False, dtype="float32"))
    positions = np.tile(np.arange(7), (3, 1))
    outputs = model(inputs() | {"masked_lm_positions": positions})
    weights = numpy_albert.weights_by_name(model)
    sequence, pooled, _ = numpy_albert.encode(weights, dict(config), **inputs())
    logits = masked_lm_logits(weights, dict(config), sequence)
    np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
    np.testing.assert_allclose(outputs["masked_lm_logits"], logits, atol=1e-5)


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


@pytest.mark.parametrize("family", ("roberta", "distilbert"))
def test_only_models_that_classify_have_a_pooler(family):
    config = small_config(family)
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
    pooled = encoder(inputs())["pooled_output"].numpy()
    assert (pooled == 0).any() and (pooled > 0).any() and (pooled >= 0).all()
    weights = numpy_albert.weights_by_name(encoder)
    expected = numpy_albert.encode(weights, dict(encoder.config), **inputs())[1]
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
    assert report.unused["pooler"] == ("bert/pooler/dense/bias", "bert/pooler/dense/kernel")
    for name, weight in ArrayTensors.of_model(tagger)._tensors.items():
        if name.startswith("bert/"):
            np.testing.assert_array_equal(weight, ArrayTensors.of_model(trained).read(name))
