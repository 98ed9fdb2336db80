"""The models of all kinds of tasks: what goes in changes what comes out as it should, only so."""

import types

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.keras_versions import name_of
from albert_keras.layers.dropout import DropoutSeed
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import SETTINGS, build_model, task_sums

POOLED = ("classification", "regression", "choice", "multi_label", "multi_regression")
#: Classes and scores come from the same model as options do.
DIFFERENT = [
    pytest.param(kind, marks=pytest.mark.slow if kind in POOLED and kind != "choice" else ())
    for kind in SETTINGS
]


def small_model(kind, changes=None, **arguments):
    arguments = {"dtype": "float32", "head_dropout": 0.0} | arguments
    model = build_model(kind, SHAPE.replace(**changes or {}), 3, **arguments)
    numpy_albert.scramble(model)
    return model


def loss_and_gradients(kind, model, inputs):
    """Returns the loss and the gradients of exactly those weights that are said to be trained."""
    with tf.GradientTape() as tape:
        loss = task_sums(kind, model.outputs_of(inputs, training=True), inputs).loss
    pairs = zip(
        model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
    )
    found = {name_of(weight): each for weight, each in pairs if each is not None}
    assert list(found) == [name_of(weight) for weight in model.trainable_weights]
    return [loss, *found.values()]


def assert_same(found, expected, tolerance=1e-5):
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


def in_numpy(model, inputs):
    """Returns weights by name, sequence output and pooled output."""
    weights = numpy_albert.weights_by_name(model)
    parts = [inputs[name] for name in ("input_ids", "input_mask", "segment_ids")]
    return weights, *numpy_albert.encode(weights, dict(SHAPE), *parts)[:2]


@pytest.mark.parametrize(
    "kind, targets, expected",
    [
        ("multi_label", [[1, 0, 0], [1, 0, 1]], [np.log(3), -np.log(3), 0]),
        ("tagging", [0, 1, 1, 0, 0], np.log([4 / 8, 3 / 8, 1 / 8])),
        ("classification", [0, 0, 2], [0, 0, 0]),
    ],
)
def test_an_untrained_head_begins_with_the_frequencies_of_labels(kind, targets, expected):
    model = build_model(kind, SHAPE, 3)
    features = types.SimpleNamespace(targets=np.array(targets))
    model.initialize_output_bias(features.targets)
    np.testing.assert_allclose(model.head.output_bias, expected, atol=1e-6)
    trained = model.head.output_bias + 1
    model.head.output_bias.assign(trained)
    model.initialize_output_bias(features.targets)
    np.testing.assert_array_equal(model.head.output_bias, trained)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_a_cosine_is_of_the_vectors_of_two_texts_alone(pooling, rows_of):
    model, inputs = small_model("similarity", pooling=pooling), rows_of("similarity")
    vectors = []
    for text in range(2):
        alone = {name: values[:, text] for name, values in inputs.items() if values.ndim == 3}
        _, sequence, pooled = in_numpy(model, alone)
        mask = alone["input_mask"][..., None]
        mean = (sequence * mask).sum(axis=1) / mask.sum(axis=1)
        vector = {"mean": mean, "cls": sequence[:, 0], "pooler": pooled}[pooling]
        vectors.append(vector / np.linalg.norm(vector, axis=1, keepdims=True))
    np.testing.assert_allclose(
        model.outputs_of(inputs)["cosine"], np.sum(np.prod(vectors, 0), 1), atol=1e-5
    )
    trained = model.outputs_of(inputs, training=True)["vectors"]  # without dropout
    np.testing.assert_allclose(trained, np.stack(vectors, axis=1), atol=1e-5)
    names = [name_of(weight) for weight in model.trainable_weights]
    assert ("bert/pooler/dense/kernel" in names) == (pooling == "pooler")


@pytest.mark.parametrize("pooling", ["mean", "pooler"])
def test_classes_are_of_the_mean_over_the_tokens_or_of_the_pooled_output(pooling, rows_of):
    model, inputs = small_model("classification", pooling=pooling), rows_of("classification")
    _, sequence, pooled = in_numpy(model, inputs)
    mask = inputs["input_mask"][..., None]
    mean = (sequence * mask).sum(axis=1) / mask.sum(axis=1)
    vectors = mean if pooling == "mean" else pooled
    expected = vectors @ model.head.output_weights.numpy().T + model.head.output_bias.numpy()
    np.testing.assert_allclose(model.outputs_of(inputs)["logits"], expected, atol=1e-5)
    names = [name_of(weight) for weight in model.trainable_weights]
    assert ("bert/pooler/dense/kernel" in names) == (pooling == "pooler")
    assert type(model).from_config(model.get_config()).pooling == pooling


@pytest.mark.parametrize("kind", DIFFERENT)
def test_neither_padding_nor_skipping_it_changes_loss_or_gradients(kind, rows_of):
    model, skipping = small_model(kind), small_model(kind, skips_padding=True)
    expected = loss_and_gradients(kind, model, rows_of(kind))
    assert_same(loss_and_gradients(kind, model, rows_of(kind, padding=6)), expected)
    assert_same(loss_and_gradients(kind, skipping, rows_of(kind, padding=6)), expected)
    trained = [name_of(weight) for weight in model.trainable_weights]
    assert ("bert/pooler/dense/kernel" in trained) == (kind in POOLED)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_a_batch_in_two_parts_drops_out_what_the_whole_does(kind, rows_of):
    rates = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    model = small_model(kind, rates, head_dropout=0.3)
    inputs, step = rows_of(kind), tf.constant(3, tf.int64)

    def train(begin, end):
        part = {name: values[begin:end] for name, values in inputs.items()}
        return model.outputs_of(
            part, training=True, dropout_seed=DropoutSeed(step, tf.constant(8 + begin, tf.int64))
        )

    whole, first, second = train(0, 4), train(0, 2), train(2, 4)
    for name, expected in whole.items():
        np.testing.assert_allclose(tf.concat([first[name], second[name]], 0), expected, atol=1e-5)
    without = small_model(kind).outputs_of(inputs, training=True)
    assert any(np.abs(whole[name] - without[name]).max() > 1e-3 for name in whole)


@pytest.mark.parametrize(
    "kind, dtype", [("choice", "mixed_float16"), ("spans_or_none", "mixed_bfloat16")]
)
def test_mixed_precision_gives_finite_losses_and_float32_outputs(kind, dtype, rows_of):
    model, inputs = small_model(kind, dtype=dtype), rows_of(kind)
    loss, *gradients = loss_and_gradients(kind, model, inputs)
    assert loss.dtype == tf.float32
    assert all(np.isfinite(each).all() for each in [loss, *map(tf.convert_to_tensor, gradients)])
    for training in (False, True):
        outputs = model.outputs_of(inputs, training=training)
        floats = {name: each for name, each in outputs.items() if not name.endswith("indices")}
        assert {each.dtype for each in floats.values()} == {tf.float32}
    expected = loss_and_gradients(kind, small_model(kind), inputs)[0]
    np.testing.assert_allclose(loss, expected, rtol=0.1)


def test_the_encoder_is_called_as_in_the_reference_and_its_weights_do_not_depend_on_the_head():
    models = [build_model(kind, SHAPE, 3, seed=3) for kind in SETTINGS]
    assert all(name_of(weight).startswith("bert/") for weight in models[0].encoder.weights)
    for model in models[1:]:
        assert_same(model.encoder.get_weights(), models[0].encoder.get_weights(), 0)
