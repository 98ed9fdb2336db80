"""A model that grows copies weights and moments, and runs as the deeper model would."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.lamb import Lamb
from albert_keras.optimization.muon import Muon
from albert_keras.training.growth import extend_positions, grow
from albert_keras.training.pretraining_step import PretrainingStep

FFN = "group_{}/inner_group_0/ffn_1/intermediate/dense/kernel"
QUERY = "group_{}/inner_group_0/attention_1/self/query/kernel"


def model_of(optimizer=Lamb, **changes):
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    config = AlbertConfig(vocab_size=20, embedding_size=4, **sizes | changes)
    model = AlbertForPretraining(config)
    optimizer = optimizer()
    optimizer._create_all_weights(model.trainable_variables)
    for number, weight in enumerate(model.trainable_variables):
        for slot in optimizer.moments_of(weight):
            optimizer.get_slot(weight, slot).assign(tf.fill(weight.shape, number + ord(slot) * 1e3))
    return model, optimizer


def values_of(model, optimizer, name):
    [weight] = [each for each in model.weights if each.name.endswith(f"{name}:0")]
    slots = [optimizer.get_slot(weight, slot) for slot in optimizer.moments_of(weight)]
    return [weight.numpy(), *(slot.numpy() for slot in slots)]


@pytest.mark.parametrize(
    "shape, shallow, sources",
    [
        ({"sharing": "none", "num_hidden_layers": 5}, 2, {FFN: [0, 1, 0, 1, 0], QUERY: [0, 1, 0]}),
        ({"sharing": "attention", "num_hidden_layers": 4}, 2, {FFN: [0, 1, 0, 1], QUERY: [0]}),
        (
            {"sharing": "ffn", "num_hidden_layers": 4, "num_hidden_groups": 2},
            2,
            {QUERY: [0, 0, 1, 1], FFN: [0, 1]},
        ),
        ({"num_hidden_layers": 4, "num_hidden_groups": 2}, 2, {QUERY: [0, 1], FFN: [0, 1]}),
        ({"optimizer": Muon, "sharing": "none", "num_hidden_layers": 2}, 1, {FFN: [0, 0]}),
    ],
)
def test_new_depths_are_copies_with_their_moments(shape, shallow, sources):
    model, optimizer = model_of(**shape)
    names = [(name, depth) for name, origins in sources.items() for depth in range(len(origins))]
    before = {each: values_of(model, optimizer, each[0].format(each[1])) for each in names}
    copied = grow(model, optimizer, shallow, model.config.num_hidden_layers)
    assert (copied > 0) == any(len(set(each)) < len(each) for each in sources.values())
    for name, depth in names:
        found = values_of(model, optimizer, name.format(depth))
        for now, then in zip(found, before[name, sources[name][depth]], strict=True):
            np.testing.assert_array_equal(now, then, err_msg=f"{name} {depth}")


def test_shared_weights_grow_for_nothing():
    model, optimizer = model_of(num_hidden_layers=6)
    assert grow(model, optimizer, 3, 6) == 0


@pytest.mark.parametrize(
    "shape",
    [{}, {"sharing": "none"}, {"sharing": "ffn"}, {"num_hidden_groups": 2, "inner_group_num": 2}],
)
def test_a_limited_depth_is_the_shallower_model(shape):
    """Initial weights follow from their names, so both models have the same ones."""
    deep, _ = model_of(num_hidden_layers=4, **shape)
    shallow, _ = model_of(num_hidden_layers=2, **shape)
    inputs = {
        "input_ids": np.arange(12, dtype=np.int32).reshape(2, 6),
        "masked_lm_positions": np.array([[1, 2], [3, 4]], np.int32),
    }
    limited = deep(inputs, num_hidden_layers=2)
    for name, expected in shallow(inputs).items():
        np.testing.assert_array_equal(limited[name], expected, err_msg=name)
    whole = deep(inputs)["masked_lm_logits"]
    assert not np.allclose(limited["masked_lm_logits"], whole, atol=1e-6)
    step = PretrainingStep(deep)
    step.num_hidden_layers = 2
    names = [weight.name for weight in step.saved_weights]
    assert names == [weight.name for weight in shallow.weights]
    assert [weight.name for weight in step.trained_weights] == names


@pytest.mark.parametrize("optimizer", [Lamb, Muon])
def test_new_positions_repeat_the_trained_ones_but_the_first_and_the_last(optimizer):
    model, optimizer = model_of(optimizer, max_position_embeddings=12)
    table = model.encoder.embeddings.position_embeddings
    rows = np.arange(12.0)[:, None] * np.ones([1, 4])
    variables = [table, optimizer.get_slot(table, "m"), optimizer.get_slot(table, "v")]
    for number, variable in enumerate(variables):
        variable.assign(rows + 100 * number)
    assert extend_positions(model, optimizer, seen=5, length=10)
    for number, variable in enumerate(variables):
        found = variable.numpy()[:, 0] - 100 * number
        assert found.tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 1, 2, 10, 11]


def test_rotary_positions_have_nothing_to_copy():
    model, optimizer = model_of(position_embedding="rotary")
    before = [weight.numpy() for weight in model.weights]
    assert not extend_positions(model, optimizer, seen=5, length=10)
    for weight, values in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, values)
