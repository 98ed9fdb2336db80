"""The faces of both packages: the documented names, and nothing heavy until one is used."""

import subprocess
import sys

import pytest

import albert_keras
import data_pipeline


@pytest.mark.parametrize("package", [albert_keras, data_pipeline])
def test_every_public_name_is_there(package):
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name


def test_pre_training_and_fine_tuning_have_names_of_their_own():
    names = "FinetuneConfig FinetunedModels TaskConfig evaluate_task finetune predict_task".split()
    assert set(names) <= set(albert_keras.__all__)
    assert albert_keras.evaluate is not albert_keras.evaluate_task
    assert {"fill_mask", "predict"} <= set(albert_keras.__all__)
    assert albert_keras.predict is not albert_keras.predict_task


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="AlbertConfigg"):
        albert_keras.AlbertConfigg  # noqa: B018


@pytest.mark.parametrize(
    "module", ["albert_keras", "data_pipeline", "albert_keras.cli", "albert_keras.config"]
)
def test_importing_loads_neither_tensorflow_nor_numpy(module):
    check = f"import {module}, sys; print({{'tensorflow', 'numpy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
