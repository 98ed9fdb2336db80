"""Weights stored narrowly, converted once per call, and no further from float32 than they must."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from albert_keras.serving.graph.precision import StoredModel

IDS = np.array([[2, 7, 19, 3], [2, 5, 3, 0]], np.int32)
PACKED = {
    "input_ids": tf.constant(IDS),
    "input_mask": tf.constant(IDS > 0, tf.int32),
    "segment_ids": tf.zeros_like(IDS),
}
POSITIONS = tf.constant([[1, 2], [1, 0]])


def make_model(depth=2, **changes):
    shape = {"vocab_size": 40, "embedding_size": 8, "hidden_size": 16, "num_attention_heads": 2}
    shape |= {"intermediate_size": 32, "max_position_embeddings": 16, "initializer_range": 0.1}
    return AlbertForPretraining(AlbertConfig(**shape | changes, num_hidden_layers=depth))


@pytest.fixture(scope="module")
def model():
    return make_model()


def weight_named(variables, end):
    (weight,) = (weight for weight in variables if name_of(weight).endswith(end))
    return weight


def test_float32_answers_what_the_model_answers(model):
    stored = StoredModel(model)
    expected = model(PACKED | {"masked_lm_positions": POSITIONS})
    found = {
        **stored.encode(PACKED),
        "masked_lm_logits": stored.masked_lm(PACKED, POSITIONS),
        "sentence_order_logits": stored.sentence_order(PACKED),
    }
    for name, value in found.items():
        # Not to the bit: heads ask for the last block at their positions alone.
        np.testing.assert_allclose(value, expected[name], atol=1e-6)


@pytest.mark.parametrize("precision, bound", [("bfloat16", 0.1), ("int8", 0.05)])
def test_narrow_weights_answer_nearly_the_same(model, precision, bound):
    expected = StoredModel(model).masked_lm(PACKED, POSITIONS)
    found = StoredModel(model, precision).masked_lm(PACKED, POSITIONS)
    difference = np.abs(found - expected).max()
    assert 0 < difference < bound * np.abs(expected).max()


def test_int8_times_scale_is_within_half_a_step_per_output_channel_or_row(model):
    stored = StoredModel(model, "int8")
    for end, axis in (("query/kernel", 0), ("word_embeddings", 1)):
        weight = weight_named(model.weights, end).numpy()
        values, scales = (weight_named(stored.variables, end + part) for part in ("", "/scales"))
        assert values.dtype == tf.int8 and np.abs(values).max() == 127
        largest = np.abs(weight).max(axis=axis, keepdims=True)
        np.testing.assert_allclose(scales, largest / 127, rtol=1e-6)
        error = np.abs(values.numpy() * scales.numpy() - weight)
        assert (error <= 0.501 * scales.numpy()).all()


def test_large_matrices_alone_are_narrow(model):
    for precision, dtype in (("bfloat16", tf.bfloat16), ("int8", tf.int8)):
        stored = StoredModel(model, precision).variables
        narrow = {name_of(variable) for variable in stored if variable.dtype == dtype}
        ends = ("kernel", "word_embeddings", "position_embeddings")
        assert narrow == {name for name in weight_names(model) if name.endswith(ends)}


def test_the_model_is_left_as_it_was(model):
    kernel = model.encoder.pooler.kernel
    before = [(weight.name, weight.dtype, weight.numpy()) for weight in model.trainable_weights]
    StoredModel(model, "int8").encode(PACKED)
    assert model.encoder.pooler.kernel is kernel
    for (name, dtype, value), weight in zip(before, model.trainable_weights, strict=True):
        assert (name, dtype) == (weight.name, weight.dtype)
        np.testing.assert_array_equal(value, weight)


def test_weights_are_widened_once_whatever_the_depth():
    def casts(depth):
        stored = StoredModel(make_model(depth), "int8")
        graph = tf.function(stored.encode).get_concrete_function(PACKED).graph
        nodes = [op for op in graph.get_operations() if op.type == "Cast"]
        return sum(op.inputs[0].dtype == tf.int8 for op in nodes)

    assert casts(2) == casts(4) > 0


def test_encoding_takes_only_rows_of_the_text_from_the_word_embeddings(model):
    stored = StoredModel(model, "int8")
    traced = tf.function(stored.encode).get_concrete_function(PACKED)
    needed = tf.compat.v1.graph_util.extract_sub_graph(
        traced.graph.as_graph_def(), [output.op.name for output in traced.outputs]
    )
    table = weight_named(stored.variables, "word_embeddings").handle
    (inside,) = (inside for outside, inside in traced.graph.captures if outside is table)
    users = [node.op for node in needed.node if inside.op.name in node.input]
    assert users == ["ResourceGather"]
