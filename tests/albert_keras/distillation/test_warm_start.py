"""A student starts from every other layer of its teacher, and from all else that fits."""

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.distillation.warm_start import layer_map, start_warm
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from tests.albert_keras import numpy_albert
from tests.albert_keras.checkpoint_tensors import assert_same
from tests.albert_keras.formats.random_weights import SMALL
from tests.albert_keras.loaded_weights import values_of

TEACHER = AlbertConfig(**SMALL | {"num_hidden_layers": 4, "sharing": "none"})
QUERY = "bert/encoder/transformer/group_{}/inner_group_0/attention_1/self/query/kernel"
OUTPUT = "bert/encoder/transformer/group_{}/inner_group_0/ffn_1/intermediate/output/dense/kernel"


@pytest.fixture(scope="module")
def teacher():
    model = AlbertForPretraining(TEACHER, dtype="float32")
    numpy_albert.scramble(model)
    return model


def opened(model):
    return OpenedModel.of(model.config, values_of(model), "it")


def started(teacher, sentence_head=True, **changes):
    config = TEACHER.replace(num_hidden_layers=2, **changes)
    student = AlbertForPretraining(config, sentence_head=sentence_head, seed=3, dtype="float32")
    report = start_warm(opened(teacher), student)
    return values_of(student), report


def test_the_map_takes_layers_at_equal_distances():
    assert layer_map(12, 6) == (0, 2, 4, 6, 8, 10)
    assert layer_map(4, 2) == (0, 2) and layer_map(6, 2) == (0, 3)
    assert layer_map(12, 5) == (0, 2, 4, 7, 9) and layer_map(2, 4) == (0, 0, 1, 1)


def test_each_layer_is_that_of_the_map_and_the_rest_is_the_teachers(teacher):
    found, report = started(teacher)
    theirs = values_of(teacher)
    for depth, layer in enumerate((0, 2)):
        for name in (QUERY, OUTPUT):
            np.testing.assert_array_equal(found[name.format(depth)], theirs[name.format(layer)])
    rest = [name for name in found if "/transformer/group_" not in name]
    assert_same({name: found[name] for name in rest}, {name: theirs[name] for name in rest})
    assert report.loaded.keys() == found.keys() and not report.new
    assert report.lines()[0].startswith("loaded from the teacher it (layers: 0, 2): ")


@pytest.mark.parametrize("sharing", ["all", "attention", "ffn"])
def test_shared_layers_are_those_of_the_first_depth_that_runs_them(teacher, sharing):
    found, report = started(teacher, sharing=sharing)
    theirs = values_of(teacher)
    np.testing.assert_array_equal(found[QUERY.format(0)], theirs[QUERY.format(0)])
    np.testing.assert_array_equal(found[OUTPUT.format(0)], theirs[OUTPUT.format(0)])
    if sharing == "ffn":
        np.testing.assert_array_equal(found[QUERY.format(1)], theirs[QUERY.format(2)])
    assert not report.new


def test_positions_are_those_that_both_have(teacher):
    name = "bert/embeddings/position_embeddings"
    theirs = values_of(teacher)[name]
    found, _ = started(teacher, position_offset=2, max_position_embeddings=5)
    np.testing.assert_array_equal(found[name][2:], theirs[:5])
    assert not np.array_equal(found[name][:2], theirs[:2])


def test_other_shapes_keep_their_initial_values(teacher):
    found, report = started(teacher, embedding_size=4)
    config = TEACHER.replace(num_hidden_layers=2, embedding_size=4)
    fresh = values_of(AlbertForPretraining(config, seed=3, dtype="float32"))
    assert "bert/embeddings/word_embeddings" in report.new
    new = list(report.new)
    assert_same({name: found[name] for name in new}, {name: fresh[name] for name in new})
    assert QUERY.format(0) in report.loaded and len(report.lines()) == 2
