"""Files of one Keras are read by the other, and say what of an optimizer they cannot restore."""

import json
import warnings
import zipfile

import keras
import numpy as np
import pytest

from albert_keras import AlbertForClassification, Lamb
from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from tests.albert_keras.formats.random_weights import SMALL
from tests.albert_keras.loaded_weights import values_of
from tests.keras_line import IS_KERAS_3

#: The other Keras, and a setting of optimizers that only it has.
OTHER, SETTING = ("2.15.0", "jit_compile") if IS_KERAS_3 else ("3.15.1", "loss_scale_factor")


def saved(path, optimizer, model=None):
    """Saves a small model whose moments are not zero; returns it."""
    model = model or AlbertForPretraining(AlbertConfig(**SMALL))
    model.compile(optimizer)
    model.optimizer.build(model.trainable_variables)
    for number, variable in enumerate(model.optimizer.variables):
        if len(variable.shape):
            variable.assign(np.full(variable.shape, 0.01 * number))
    model.save(path)
    return model


def as_of_the_other(path):
    """Changes a file as if the other Keras had written it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(members["config.json"])
    content["compile_config"]["keras"] = OTHER
    content["compile_config"]["optimizer"]["config"][SETTING] = None
    members["config.json"] = json.dumps(content)
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)


def test_keys_of_weights_are_names_of_the_reference(tmp_path):
    import h5py

    model = saved(tmp_path / "model.keras", Lamb(1e-3))
    with zipfile.ZipFile(tmp_path / "model.keras") as archive:
        file = h5py.File(archive.open("model.weights.h5"))
        stored = {f"vars/{name.replace('/', '.')}" for name in weight_names(model)}
        found = []
        file.visititems(lambda name, item: found.append(name) if hasattr(item, "shape") else None)
    assert stored == {name for name in found if not name.startswith("optimizer/")}


def test_moments_of_our_optimizers_are_restored_from_the_other_keras(tmp_path):
    model = saved(tmp_path / "model.keras", Lamb(1e-3))
    as_of_the_other(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = keras.models.load_model(tmp_path / "model.keras")
    for one, other in zip(model.optimizer.variables, loaded.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize(
    "optimizer",
    [keras.optimizers.Adam(1e-3), keras.mixed_precision.LossScaleOptimizer(Lamb(1e-3))],
    ids=["Adam", "LossScaleOptimizer"],
)
def test_an_optimizer_of_the_other_keras_is_missed_aloud(optimizer, tmp_path):
    classifier = AlbertForClassification(AlbertConfig(**SMALL), labels=["neg", "pos"])
    model = saved(tmp_path / "model.keras", optimizer, classifier)
    as_of_the_other(tmp_path / "model.keras")
    with pytest.warns(UserWarning) as caught:
        loaded = keras.models.load_model(tmp_path / "model.keras")
    assert f"the optimizer is not: Keras {OTHER} wrote it" in str(caught[0].message)
    moments = [each.numpy() for each in loaded.optimizer.variables if len(each.shape)]
    assert isinstance(loaded.optimizer, Lamb) and not any(map(np.any, moments))
    expected = values_of(model)
    for name, value in values_of(loaded).items():
        np.testing.assert_array_equal(value, expected[name])
