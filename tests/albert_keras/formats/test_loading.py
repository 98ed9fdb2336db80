"""Weights go into a model all or none, and what became of each is told."""

import numpy as np
import pytest

from albert_keras.formats.open_weights import open_weights
from tests.albert_keras.loaded_weights import QUERY, TABLE, assert_loads, refused, values_of
from tests.albert_keras.tasks.small_tasks import build_model


@pytest.fixture(scope="module")
def config(pretrained):
    return pretrained.config


@pytest.fixture
def model(config):
    return build_model("classification", config, 3, seed=9)


def test_a_checkpoint_of_the_reference(foreign, model, pretrained):
    prefix = foreign()
    for path in (prefix, prefix.parent):
        origin = open_weights(path)
        assert origin.step is None
        report = assert_loads(origin, model, pretrained)
    assert report.unused == ("masked_lm", "sentence_order")


def test_a_head_is_loaded_for_the_same_task_if_it_fits(tmp_path, tiny_tokenizer, config, model):
    trained = build_model("classification", config, 3, seed=1)
    trained.save(tmp_path / "sst2.keras")
    origin = open_weights(tmp_path / "sst2.keras", tokenizer=tiny_tokenizer)
    assert assert_loads(origin, model, trained).unused == ("classifier",)
    two = build_model("classification", config, 2)
    assert origin.load(two, with_head=True).new == {"output_weights": 64, "output_bias": 2}
    report = origin.load(model, with_head=True)
    assert not report.new and not report.unused and len(report.lines()) == 1
    assert report.lines()[0].endswith(" and output_weights, output_bias (99 values)")
    for name, value in values_of(trained).items():
        np.testing.assert_array_equal(values_of(model)[name], value)


def drop(tensors, name):
    del tensors[name]


def rename(tensors, name):
    tensors[f"{name}_0"] = tensors.pop(name)


def transpose(tensors, name):
    tensors[name] = np.ascontiguousarray(tensors[name].T)


def spoil(tensors, name):
    tensors[name] = tensors[name].copy()
    tensors[name][0, 0] = np.nan


@pytest.mark.parametrize(
    "change, name, says",
    [
        (drop, QUERY, [f"{QUERY}: missing ({QUERY} [32, 32])"]),
        (transpose, TABLE, [f"{TABLE}: expected shape [307, 16], received [16, 307]"]),
        (rename, QUERY, [f"{QUERY}: missing", f"{QUERY}_0: unexpected tensor of shape [32, 32]"]),
        (spoil, TABLE, [f"{TABLE}: 1 numbers are not finite"]),
        (
            lambda t, name: t.update({name: t[name].astype(int)}),
            QUERY,
            [f"{QUERY}: expected floats, received"],
        ),
        (
            lambda t, name: t.update({name: t[name] * np.float64(1e300)}),
            QUERY,
            [f"{QUERY}: 1,024 numbers are not"],
        ),
        (
            lambda t, name: t.update({name.replace("group_0", "group_1", 1): t[name]}),
            QUERY,
            [f"{QUERY.replace('group_0', 'group_1', 1)}: unexpected tensor of shape"],
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(foreign, model, change, name, says):
    message = refused(model, open_weights(foreign(lambda tensors: change(tensors, name))))
    assert all(part in message for part in says), message
    assert message.count("\n") == len([part for part in says if "bert/" in part])


def test_damaged_bytes_of_a_foreign_checkpoint_are_told(foreign, model):
    origin = open_weights(foreign())
    with open(f"{origin.path}.data-00000-of-00001", "r+b") as file:
        file.write(b"\x01" * 400)
    assert "cannot be read" in refused(model, origin)
