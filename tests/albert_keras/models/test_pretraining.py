import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.layers.cross_entropy import sparse_cross_entropy
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.pretraining import AlbertForPretraining
from tests.albert_keras import numpy_albert
from tests.albert_keras.models.test_encoder import SMALL

CONFIG = AlbertConfig(**SMALL)


def small_model(**arguments):
    changes = arguments.pop("changes", {})
    arguments = {"dtype": "float32", "seed": 0} | arguments
    model = AlbertForPretraining(CONFIG.replace(**changes), **arguments)
    numpy_albert.scramble(model)
    return model


def features():
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(0, 50, (2, 7)),
        "input_mask": np.array([[1] * 7, [1] * 4 + [0] * 3]),
        "segment_ids": rng.integers(0, 2, (2, 7)),
        "masked_lm_positions": np.array([[1, 2, 5], [3, 0, 0]]),
    }


def test_the_output_table_is_the_word_table_and_learns_from_both_ends():
    model, inputs = small_model(), features()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs)["masked_lm_logits"] ** 2)
    table = model.encoder.embeddings.word_embeddings
    gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.Tensor)
    # Pieces that occur nowhere in the inputs still move: as candidates of the output.
    assert np.abs(gradient).sum(1).all()
    assert sum(weight is table for weight in model.weights) == 1


@pytest.mark.parametrize("sharing, dtype", [("all", "float32"), ("ffn", "mixed_bfloat16")])
def test_a_saved_model_comes_back_with_equal_weights_and_equal_sharing(tmp_path, sharing, dtype):
    model = small_model(changes={"sharing": sharing}, seed=5, dtype=dtype)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [*map(name_of, loaded.weights)] == [*map(name_of, model.weights)]
    assert loaded.count_params() == model.count_params()
    assert all(map(np.array_equal, loaded.get_weights(), model.get_weights()))
    assert loaded.get_config() == model.get_config()
    assert loaded.encoder.dtype_policy.name == dtype
    for name, output in model(features()).items():
        np.testing.assert_array_equal(output, loaded(features())[name])


def loss_of_full_call(model, inputs):
    outputs = model(inputs, training=True)
    return total_loss(outputs, outputs["masked_lm_logits"])


def loss_of_predictions(model, inputs):
    outputs = model(inputs, training=True, only_predictions=True)
    return total_loss(outputs, outputs["masked_lm_scores"], model.masked_lm_head.output_bias)


def total_loss(outputs, scores, bias=None):
    weights = tf.constant([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    bias = tf.zeros(scores.shape[-1]) if bias is None else tf.convert_to_tensor(bias)
    rows, ids = tf.reshape(scores, [-1, scores.shape[-1]]), tf.constant([4, 9, 49, 0, 0, 0])
    masked, _ = sparse_cross_entropy(rows, bias, ids)
    logits = outputs["sentence_order_logits"]
    order, _ = sparse_cross_entropy(logits, tf.zeros([2]), tf.constant([0, 1]))
    masked = tf.reduce_sum(masked * tf.reshape(weights, [-1]))
    return masked + tf.reduce_sum(order * [1.0, 0.5])


def gradients(loss, model, inputs):
    with tf.GradientTape() as tape:
        value = loss(model, inputs)
    return [value, *tape.gradient(value, model.trainable_variables)]


def assert_same_gradients(found, expected, model, tolerance=1e-5):
    names = ["loss", *(name_of(weight) for weight in model.trainable_variables)]
    for name, left, right in zip(names, found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    "sharing, arguments",
    [
        ("none", {}),
        ("all", {"recompute": True, "skips_padding": True}),
    ],
)
def test_only_predictions_give_all_weights_the_gradients_of_the_full_call(sharing, arguments):
    full = small_model(changes={"sharing": sharing})
    model = small_model(changes={"sharing": sharing}, **arguments)
    expected = gradients(loss_of_full_call, full, features())
    found = gradients(loss_of_predictions, model, features())
    assert_same_gradients(found, expected, full)


def written_gradients(function, inputs):
    graph = tf.function(function).get_concrete_function(inputs).graph
    # TensorFlow keeps each written gradient as an operation of its own.
    return [each.name for each in graph.get_operations() if each.type == "IdentityN"]


def test_a_trace_for_serving_holds_no_gradients_of_the_encoder():
    encoder, inputs = small_model().encoder, encoder_inputs(features())
    inputs = {name: tf.constant(values) for name, values in inputs.items()}
    assert not written_gradients(encoder, inputs)
    assert written_gradients(lambda inputs: encoder(inputs, training=True), inputs)
