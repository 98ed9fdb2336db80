import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.pretraining import AlbertForPretraining
from tests.albert_keras import numpy_albert
from tests.albert_keras.models.test_encoder import SMALL
from tests.albert_keras.models.test_encoder_left_out import assert_same_gradients, weighted_sum

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


def gradients(model, **kwargs):
    with tf.GradientTape() as tape:
        outputs = model(features(), training=True, **kwargs)
        if kwargs:
            bias = tf.convert_to_tensor(model.masked_lm_head.output_bias)
            logits = outputs["masked_lm_scores"] + bias
        else:
            logits = outputs["masked_lm_logits"]
        logits = tf.reshape(logits, [-1, CONFIG.vocab_size])
        loss = weighted_sum(logits) + weighted_sum(outputs["sentence_order_logits"])
    return tape.gradient(loss, model.trainable_variables)


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
    assert_same_gradients(full, gradients(model, only_predictions=True), gradients(full))


def written_gradients(function, inputs):
    graph = tf.function(function).get_concrete_function(inputs).graph
    # TensorFlow keeps each written gradient as an operation of its own.
    return [each.name for each in graph.get_operations() if each.type == "IdentityN"]


def test_a_trace_for_serving_holds_no_gradients_of_the_encoder():
    encoder, inputs = small_model().encoder, encoder_inputs(features())
    inputs = {name: tf.constant(values) for name, values in inputs.items()}
    assert not written_gradients(encoder, inputs)
    assert written_gradients(lambda inputs: encoder(inputs, training=True), inputs)
