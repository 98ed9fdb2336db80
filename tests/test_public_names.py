"""The faces of both packages: the documented names, and nothing heavy until one is used."""

import ast
import inspect
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import albert_keras
import data_pipeline
from data_pipeline.lazy_names import program_version
from tests.repository import PROJECT


@pytest.mark.parametrize("package", [albert_keras, data_pipeline])
def test_every_public_name_is_there(package):
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name


def test_importing_loads_neither_tensorflow_nor_numpy():
    modules = "sys, albert_keras.cli, albert_keras.config, data_pipeline"
    check = f"import {modules}; print({{'tensorflow', 'numpy'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr


@pytest.mark.parametrize("package", [albert_keras, data_pipeline])
def test_the_public_names_are_type_checked(package):
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {node.module for node in imports for alias in node.names if alias.asname}
    files = {
        name.removesuffix(".py").replace("/", ".") for name in PROJECT["tool"]["mypy"]["files"]
    }
    assert homes <= files


@pytest.mark.parametrize("package", [albert_keras, data_pipeline])
def test_public_functions_and_methods_are_annotated(package):
    missing = []
    for name in package.__all__:
        public = getattr(package, name)
        functions = {name: public}
        if inspect.isclass(public):
            members = {
                key: getattr(value, "__func__", value) for key, value in vars(public).items()
            }
            functions = {
                f"{name}.{key}": value
                for key, value in members.items()
                if inspect.isfunction(value)
                and (key == "__init__" or not key.startswith("_"))
                and not value.__module__.startswith("keras")  # a loss of Keras
            }
        for full_name, function in functions.items():
            signature = inspect.signature(function)
            missing += [
                f"{full_name}({parameter})"
                for parameter, value in signature.parameters.items()
                if value.annotation is value.empty and parameter not in ("self", "cls")
            ]
            if signature.return_annotation is signature.empty and not full_name.endswith(
                "__init__"
            ):
                missing.append(f"{full_name} -> ?")
    assert not missing


def test_a_checkout_that_is_not_installed_has_an_unknown_version(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert program_version() == albert_keras.__version__ == "unknown"
