"""TensorFlow Lite files hold shared weights once and answer as the Keras model does."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.serving.export.lite import LiteModel, write_lite
from albert_keras.serving.export.source import ExportSource

LENGTH = 16


def make_model(depth):
    shape = {"vocab_size": 300, "embedding_size": 32, "hidden_size": 128, "initializer_range": 0.1}
    shape |= {"num_attention_heads": 2, "intermediate_size": 512, "max_position_embeddings": 16}
    return AlbertForPretraining(AlbertConfig(**shape, num_hidden_layers=depth))


def convert(folder, model, weights):
    source = ExportSource({}, None, model, None, LENGTH)
    return write_lite(folder, source, [weights])[weights]


@pytest.mark.slow
@pytest.mark.parametrize("weights, size", [("float16", 2), ("int8", 1)])
def test_a_file_is_hardly_larger_than_its_weights_whatever_the_depth(weights, size, tmp_path):
    model = make_model(2)
    converted = convert(tmp_path, model, weights).read_bytes()
    size *= sum(weight.shape.num_elements() for weight in model.weights)
    assert size <= len(converted) < size + 60_000
    deeper = convert(tmp_path, make_model(4), weights).read_bytes()
    assert abs(len(deeper) - len(converted)) < 0.08 * len(converted)


@pytest.mark.parametrize("weights, bound", [("float16", 5e-3), ("int8", 0.15)])
def test_it_answers_as_the_keras_model_with_built_in_operations(weights, bound, tmp_path):
    model = make_model(1)
    path = convert(tmp_path, model, weights)
    lite = LiteModel(path)
    ids = [2, 40, 277, 4, 61, 3]
    expected = model({"input_ids": np.array([ids]), "masked_lm_positions": np.array([[3]])})
    found = lite.encode(ids)
    assert found["sequence_output"].shape == (1, LENGTH, 128)
    for name, value in found.items():
        real = value[:, :6] if name == "sequence_output" else value
        assert 0 < np.abs(real - expected[name]).max() < bound
    logits = expected["masked_lm_logits"][0, 0]
    probabilities = lite.fill_masks(ids, [3])[0]
    difference = np.abs(np.log(probabilities) - tf.nn.log_softmax(logits)).max()
    assert difference < 8 * bound * np.std(logits)

    # Without the delegate that brings TensorFlow's own operations to the interpreter.
    resolver = tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(str(path), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    names = {operation["op_name"] for operation in interpreter._get_ops_details()}
    assert names and not any("Flex" in name or "CUSTOM" in name.upper() for name in names)
    assert interpreter.get_signature_list() == {
        "encode": {
            "inputs": ["input_ids", "input_mask", "segment_ids"],
            "outputs": ["pooled_output", "sequence_output"],
        },
        "masked_lm": {"inputs": ["vector"], "outputs": ["masked_lm_logits"]},
    }
