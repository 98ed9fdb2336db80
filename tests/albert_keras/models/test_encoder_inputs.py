"""Inputs that the encoder would ignore or misread are one clear error."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForPretraining,
    AlbertForRegression,
    AlbertForSimilarity,
)

IDS = tf.ones([2, 8], tf.int32)
SHAPE = AlbertConfig.from_name("albert-tiny", vocab_size=50)


@pytest.fixture(scope="module")
def encoder():
    return AlbertEncoder(SHAPE)


@pytest.mark.parametrize(
    "inputs, message",
    [
        (IDS, "must be a dict with `input_ids`"),
        (["text"], "AlbertPreprocessor makes one of texts"),
        ({"input_mask": IDS}, "must have `input_ids`"),
        ({"input_ids": IDS, "attention_mask": IDS}, "it is called `input_mask` here"),
        ({"input_ids": IDS, "padding_mask": IDS}, "it is called `input_mask` here"),
        ({"input_ids": IDS, "segmentids": IDS}, "Did you mean `segment_ids`"),
        ({"input_ids": IDS[0]}, "Add an axis for a batch of one"),
        ({"input_ids": tf.cast(IDS, tf.float32)}, "must be integers. Received: float32"),
        ({"input_ids": IDS, "input_mask": IDS[:, :4]}, "`input_mask` must have the shape"),
        ({"input_ids": tf.ragged.constant([[1], [2, 3]])}, "Received: RaggedTensor"),
        ({"input_ids": [[1], [2, 3]]}, "rows of equal length"),
        ({"input_ids": tf.constant([["a"]])}, "Received: strings"),
    ],
)
def test_what_the_encoder_cannot_read_is_refused(encoder, inputs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        encoder(inputs)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint32", "uint64"])
def test_ids_may_be_integers_of_any_type(encoder, dtype):
    given = {"input_ids": np.full([1, 4], 7, dtype)}
    expected = encoder({"input_ids": np.full([1, 4], 7, "int32")})["pooled_output"]
    np.testing.assert_array_equal(encoder(given)["pooled_output"], expected)


def test_a_mask_may_be_of_truth_values_and_a_depth_must_exist(encoder):
    masked = encoder({"input_ids": IDS, "input_mask": IDS > 0, "segment_ids": IDS * 0})
    for given in ({}, {"segment_ids": None}):
        found = encoder({"input_ids": IDS} | given)["sequence_output"]
        np.testing.assert_array_equal(found, masked["sequence_output"])
    for depth in (0, 3):
        with pytest.raises(ValueError, match="must be from 1 to 2, the depth"):
            encoder({"input_ids": IDS}, num_hidden_layers=depth)


def test_a_batch_may_have_more_but_nothing_under_a_foreign_name():
    model = AlbertForPretraining(SHAPE)
    inputs = {"input_ids": IDS, "masked_lm_positions": IDS[:, :2], "labels": IDS[:, 0]}
    assert model(inputs)["masked_lm_logits"].shape == (2, 2, 50)
    with pytest.raises(ValueError, match="`token_type_ids` is called `segment_ids` here"):
        model(inputs | {"token_type_ids": IDS})
    with pytest.raises(ValueError, match="must have `masked_lm_positions`"):
        model({"input_ids": IDS})
    pairs = {"input_ids": tf.ones([2, 2, 8], tf.int32)}
    with pytest.raises(ValueError, match="`padding_mask` is called `input_mask` here"):
        AlbertForSimilarity(SHAPE)(pairs | {"padding_mask": pairs["input_ids"]})


def test_the_summary_shows_that_layers_are_shared(encoder):
    lines = []
    encoder.summary(print_fn=lines.append)
    assert any("attention_0_0_called_2x" in line for line in lines)


def test_an_encoder_has_inputs_in_a_functional_model():
    encoder = AlbertEncoder(SHAPE)
    with pytest.raises(AttributeError, match="Make them by `keras.Input"):
        encoder.input  # noqa: B018
    ids = keras.Input((None,), dtype="int32", name="input_ids")
    model = keras.Model(ids, encoder({"input_ids": ids})["pooled_output"])
    [found] = tf.nest.flatten(encoder.input)
    assert found is ids and model.predict(IDS, verbose=0).shape == (2, SHAPE.hidden_size)


@keras.saving.register_keras_serializable("tests")
class WithHead(keras.Model):
    """A model of a user, as a subclass."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = AlbertEncoder(SHAPE)
        self.head = keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.head(self.encoder(inputs, training=training)["pooled_output"])


def test_a_file_of_a_subclass_is_loaded_with_all_weights(tmp_path):
    inputs, model = {"input_ids": IDS, "input_mask": IDS}, WithHead()
    answers = model(inputs)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        keras.models.load_model(tmp_path / "model.keras")(inputs), answers
    )


@pytest.mark.parametrize("name", ["activation", "backbone", "dropout", "num_classes"])
def test_arguments_of_keras_hub_are_answered_with_ours(name):
    for model_class in (AlbertEncoder, AlbertForPretraining, AlbertForRegression):
        with pytest.raises(TypeError, match=f"has no argument `{name}`: "):
            model_class(SHAPE, **{name: 2})
