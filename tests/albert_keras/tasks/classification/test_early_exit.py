"""Rows that stop after the first confident layer, compared with the classifiers of all layers."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.tasks.classification.model import AlbertForClassification

LAYERS, CLASSES = 3, 3


def build(exit_at_confidence=None, **shape):
    values = {"num_hidden_layers": LAYERS, "vocab_size": 50, "hidden_size": 16}
    values |= {"num_attention_heads": 2, "intermediate_size": 32, "embedding_size": 8}
    config = AlbertConfig.from_name("albert-tiny", **values | {"initializer_range": 0.5} | shape)
    model = AlbertForClassification(
        config, CLASSES, exit_heads=True, exit_at_confidence=exit_at_confidence, dtype="float32"
    )
    rng = np.random.default_rng(0)
    for head in (*model.exit_heads, model.head):  # larger than usual, so that confidences differ
        head.output_weights.assign(rng.normal(size=head.output_weights.shape))
    return model


@pytest.fixture(scope="module")
def inputs():
    """Returns nine rows, with padding."""
    rng = np.random.default_rng(1)
    ids = rng.integers(5, 50, [9, 11]).astype(np.int32)
    mask = (np.arange(11) < rng.integers(3, 12, [9, 1])).astype(np.int32)
    return {"input_ids": ids, "input_mask": mask}


@pytest.mark.parametrize(
    "shape",
    [{}, {"sharing": "none"}, {"sharing": "attention", "num_hidden_groups": 2}]
    + [{"inner_group_num": 2}],
    ids=["shared", "not shared", "groups", "two blocks"],
)
def test_each_row_has_the_answer_of_its_first_confident_layer(inputs, shape):
    model = build(0.7, **shape)
    every = model.logits_of_layers(inputs).numpy()  # [9, L, C]
    assert every.shape == (9, LAYERS, CLASSES)
    is_sure = tf.nn.softmax(every).numpy().max(axis=-1) >= 0.7
    is_sure[:, -1] = True
    expected = is_sure.argmax(axis=1)
    assert len(set(expected.tolist())) > 1  # otherwise the test shows nothing
    # In a graph, as in an export, once with shared layers and once without; else eagerly.
    found = (tf.function(model) if shape in ({}, {"sharing": "none"}) else model)(inputs)
    np.testing.assert_array_equal(found["layers"], expected + 1)
    chosen = np.take_along_axis(every, expected[:, None, None], axis=1)[:, 0]
    np.testing.assert_allclose(found["logits"], chosen, atol=1e-4)


def test_a_row_alone_answers_as_in_a_batch(inputs):
    model = build(0.7)
    together = model(inputs)
    for row in range(9):
        alone = model({name: values[row : row + 1] for name, values in inputs.items()})
        assert alone["layers"][0] == together["layers"][row]
        np.testing.assert_allclose(alone["logits"][0], together["logits"][row], atol=1e-4)


def test_a_confident_row_does_not_run_later_layers(inputs):
    model = build(1e-6, sharing="none")  # every row is confident after the first layer
    for attention, _ in model.encoder.blocks[1:]:
        attention.query.kernel.assign(attention.query.kernel * np.nan)
    found = model(inputs)
    np.testing.assert_array_equal(found["layers"], 1)
    assert np.isfinite(found["logits"]).all()
    assert not np.isfinite(model.logits_of_layers(inputs)[:, 1:]).any()


def test_training_returns_the_logits_of_all_layers_and_trains_every_head(inputs):
    model = build(0.7)
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        loss = tf.reduce_sum(outputs["exit_logits"] ** 2) + tf.reduce_sum(outputs["logits"] ** 2)
    assert outputs["exit_logits"].shape == (9, LAYERS - 1, CLASSES)
    for weight, gradient in zip(
        model.trained_weights, tape.gradient(loss, model.trained_weights), strict=True
    ):
        assert gradient is not None, weight.name
