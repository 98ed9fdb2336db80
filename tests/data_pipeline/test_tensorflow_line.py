import re
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from data_pipeline import tensorflow_line
from data_pipeline.tensorflow_line import (
    LINES,
    VARIABLE,
    needs_tf_keras,
    required_line,
    use_keras_2,
)


@pytest.fixture
def on_line(monkeypatch):
    """Returns a function that pretends certain versions of packages and a module `tensorflow`."""

    def pretend(versions, keras_module=None):
        def version(name):
            if name not in versions:
                raise metadata.PackageNotFoundError(name)
            return versions[name]

        monkeypatch.setattr(tensorflow_line.metadata, "version", version)
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
        if keras_module:
            keras = SimpleNamespace(Model=SimpleNamespace(__module__=keras_module))
            monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(keras=keras))
        needs_tf_keras.cache_clear()

    yield pretend
    needs_tf_keras.cache_clear()


NEWER = {"keras": "3.15.1", "tf-keras": "2.21.0"}


def test_keras_is_keras_2_here():
    from tensorflow import keras

    package = "tf_keras" if needs_tf_keras() else "keras"
    assert keras.Model.__module__ == f"{package}.src.engine.training"


def test_nothing_is_set_for_tensorflow_2_15(on_line, monkeypatch):
    on_line({"keras": "2.15.0"})
    use_keras_2()
    assert VARIABLE not in tensorflow_line.os.environ


@pytest.mark.parametrize("given", [None, "0"])
def test_keras_2_is_selected_for_later_versions(on_line, monkeypatch, given):
    on_line(NEWER)
    if given:
        monkeypatch.setenv(VARIABLE, given)
    else:
        monkeypatch.setenv(VARIABLE, "")  # so that the value set below is undone
    use_keras_2()
    assert tensorflow_line.os.environ[VARIABLE] == "1"


def test_tensorflow_may_be_imported_first(on_line, monkeypatch):
    on_line(NEWER, keras_module="tf_keras.src.engine.training")
    monkeypatch.setenv(VARIABLE, "")
    use_keras_2()


def test_keras_3_may_not_be_used_first(on_line, monkeypatch):
    on_line(NEWER, keras_module="keras.src.models.model")
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(ImportError, match=r"must be Keras 2.*Received: Keras 3\.15\.1.*Import"):
        use_keras_2()


def test_tf_keras_must_be_installed(on_line):
    on_line({"keras": "3.15.1"})
    line = required_line()
    command = f"pip install {line.keras_package}=={line.keras}"
    with pytest.raises(ImportError, match=f"Keras 3.15.1, without the package tf-keras.*{command}"):
        use_keras_2()


def test_the_lines_are_those_of_the_requirements():
    listing = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    pins = re.findall(r'^    "(tensorflow==.*|tf-keras==.*)",', listing, re.MULTILINE)
    requirements = [Requirement(pin) for pin in pins]
    for line in LINES:
        for python in line.pythons:
            assert required_line(python) is line
            environment = {"python_version": ".".join(map(str, python))}
            found = {
                one.name: str(one.specifier)
                for one in requirements
                if one.marker.evaluate(environment)
            }
            assert found.pop("tensorflow") == f"=={line.tensorflow}"
            assert found == (
                {"tf-keras": f"=={line.keras}"} if line.keras_package == "tf-keras" else {}
            )
    assert required_line((3, 14)) is LINES[0]
