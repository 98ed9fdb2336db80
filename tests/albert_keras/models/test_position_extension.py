"""A longer table of positions repeats the trained ones, and everything else stays."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.extension import copied_positions, extend_positions
from albert_keras.formats.open_weights import open_weights
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.lamb import Lamb
from albert_keras.optimization.muon import Muon
from albert_keras.runs.tensors import weight_names

TABLE = "bert/embeddings/position_embeddings"


def test_neighbours_stay_neighbours_and_the_ends_are_not_repeated():
    assert copied_positions(5, 11).tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3]
    assert copied_positions(5, 8, offset=2).tolist() == [0, 1, 2, 3, 4, 5, 6, 3, 4, 5]
    assert copied_positions(5, 4).tolist() == [0, 1, 2, 3]


def test_weights_of_a_run_are_opened_for_longer_sequences(tiny_run):
    # The run has 64 positions, and records of 32 tokens.
    origin = open_weights(tiny_run)
    longer = origin.lengthened(200)
    old, new = AlbertEncoder(origin.albert_config), AlbertEncoder(longer.albert_config)
    origin.load(old)
    longer.load(new)
    old, new = ({n: w.numpy() for n, w in weight_names(e).items()} for e in (old, new))
    np.testing.assert_array_equal(new.pop(TABLE), old.pop(TABLE)[copied_positions(32, 200)])
    assert new.keys() == old.keys()
    for name, values in old.items():
        np.testing.assert_array_equal(new[name], values)
    assert origin.lengthened(None) is origin


def test_positions_that_were_not_trained_are_copied_without_more_of_them(tiny_run):
    origin = open_weights(tiny_run)
    table = origin.lengthened(64).tensors.read(TABLE)
    np.testing.assert_array_equal(table, origin.tensors.read(TABLE)[copied_positions(32, 64)])
    trained = dataclasses.replace(origin, sequence_length=64)
    assert trained.lengthened(64) is trained


def model_of(optimizer=Lamb, **changes):
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    config = AlbertConfig(vocab_size=20, embedding_size=4, **sizes | changes)
    model = AlbertForPretraining(config, seed=0)
    optimizer = optimizer()
    optimizer.build(model.trainable_variables)
    for number, weight in enumerate(model.trainable_variables):
        for slot in optimizer.moments_of(weight):
            optimizer.moments_of(weight)[slot].assign(
                tf.fill(weight.shape, number + ord(slot) * 1e3)
            )
    return model, optimizer


@pytest.mark.parametrize(
    "shape", [{"sharing": "ffn"}, {"num_hidden_groups": 2, "inner_group_num": 2}]
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


@pytest.mark.parametrize("optimizer", [Lamb, Muon])
def test_new_positions_repeat_the_trained_ones_but_the_first_and_the_last(optimizer):
    model, optimizer = model_of(optimizer, max_position_embeddings=12)
    table = model.encoder.embeddings.position_embeddings
    rows = np.arange(12.0)[:, None] * np.ones([1, 4])
    variables = [table, optimizer.moments_of(table)["m"], optimizer.moments_of(table)["v"]]
    for number, variable in enumerate(variables):
        variable.assign(rows + 100 * number)
    assert extend_positions(model, optimizer, seen=5, length=10)
    for number, variable in enumerate(variables):
        found = variable.numpy()[:, 0] - 100 * number
        assert found.tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 1, 2, 10, 11]
