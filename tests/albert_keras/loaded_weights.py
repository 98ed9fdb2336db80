"""Weights of models, before and after others were loaded into them."""

import numpy as np
import pytest

from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

#: Two weights of every encoder.
QUERY = "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel"
TABLE = "bert/embeddings/word_embeddings"


def values_of(model):
    """Returns the weights of a model by name."""
    return {name: weight.numpy() for name, weight in weight_names(model).items()}


def encoder_of(model):
    """Returns the weights of a model's encoder by name."""
    return {name: value for name, value in values_of(model).items() if name.startswith("bert/")}


def assert_loads(origin, model, pretrained):
    """Makes sure that a model of 3 classes gets the encoder of another; returns the LoadReport."""
    before = values_of(model)
    report = origin.load(model)
    wanted, found = encoder_of(pretrained), values_of(model)
    assert report.loaded == {name: value.size for name, value in wanted.items()}
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert report.new == {"output_weights": 96, "output_bias": 3}
    for name in report.new:
        np.testing.assert_array_equal(found[name], before[name])
    return report


def refused(model, origin):
    """Returns what loading says, and makes sure that it changed nothing."""
    before = values_of(model)
    with pytest.raises(InputError) as caught:
        origin.load(model)
    after = values_of(model)
    assert all(np.array_equal(after[name], value) for name, value in before.items())
    return str(caught.value)
