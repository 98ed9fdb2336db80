"""Imports point one way."""

import ast
import functools
import graphlib

import pytest

from tests.repository import PACKAGES, ROOT

#: Packages and modules of albert_keras from the lowest up. Within a row, none imports another.
ROWS = (
    ("config", "demo_corpus", "hub", "recipes", "report", "keras_versions"),
    ("shipped_models", "sharing"),
    ("layers", "shape"),
    ("optimization", "runs"),
    ("formats",),
    ("models",),
    ("saving",),
    ("training",),
    ("tasks",),
    ("distillation",),
    ("serving/layout",),
    ("serving/graph", "serving/saved_model", "serving/sample_texts"),
    ("serving/calls", "serving/serve_check"),
    ("serving/predictor", "serving/export"),
    ("serving/publish", "serving/kit", "serving/local"),
    ("serving", "conversion"),
    ("texts",),
    ("demo", "dry_run", "reports"),
    ("machine",),
    ("cli",),
)
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}


def level_of(parts):
    """Returns the level of a module, by its room or by the part of a room that has its own."""
    inner = "/".join(parts[:2])
    return LEVEL[inner if inner in LEVEL else parts[0]]


#: Rooms and modules of data_pipeline from the lowest up. Within a row, none imports another.
DATA_ROWS = (
    ("errors", "lazy_names"),
    ("file_kinds",),
    ("limits", "progress", "tensorflow_line", "randomness", "child_processes"),
    ("files", "settings", "array_files"),
    ("folder_lock", "config", "text"),
    ("tokenizers",),
    ("instances",),
    ("records",),
    ("building", "reader"),
    ("reports",),
)
DATA_LEVEL = {name: level for level, row in enumerate(DATA_ROWS) for name in row}


@functools.cache
def imports_of(path):
    """Returns the full names of the modules a file imports, wherever in the file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module)
    return found


def files_of(package):
    return sorted(((ROOT if package == "tests" else PACKAGES) / package).rglob("*.py"))


def test_the_data_side_does_not_know_the_model_side():
    for path in files_of("data_pipeline"):
        assert not any(name.startswith("albert_keras") for name in imports_of(path)), path


def test_each_room_of_the_data_side_imports_from_lower_ones_only():
    for path in files_of("data_pipeline"):
        here = path.relative_to(PACKAGES / "data_pipeline").parts[0].removesuffix(".py")
        if here.startswith("__"):
            continue
        for name in imports_of(path):
            if name.startswith("data_pipeline."):
                there = name.split(".")[1]
                is_lower = DATA_LEVEL[there] < DATA_LEVEL[here]
                assert there == here or is_lower, f"{path} imports {name}"


def test_each_package_imports_from_lower_ones_only():
    for path in files_of("albert_keras"):
        here = path.relative_to(PACKAGES / "albert_keras").with_suffix("").parts
        if here[0].startswith("__"):
            continue
        for name in imports_of(path):
            if name.startswith("albert_keras."):
                there = name.split(".")[1:]
                is_lower = level_of(there) < level_of(here)
                is_same = there[0] == here[0] and level_of(there) == level_of(here)
                assert is_same or is_lower, f"{path} imports {name}"


@pytest.mark.parametrize("package", ["albert_keras", "data_pipeline"])
def test_modules_import_each_other_one_way(package):
    """No room imports upwards inside, either: of two modules one is below the other."""
    modules = {
        ".".join(path.relative_to(PACKAGES).with_suffix("").parts): path
        for path in files_of(package)
        if path.name != "__init__.py"
    }
    graph = {name: {*imports_of(path)} & modules.keys() for name, path in modules.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError with the cycle


def test_keras_has_one_spelling_and_its_libraries_are_not_needed():
    unwanted = {"tensorflow.keras", "tf_keras", "tensorflow_addons", "keras_nlp", "keras_hub"}
    for package in ("albert_keras", "data_pipeline", "tests"):
        for path in files_of(package):
            found = imports_of(path)
            assert not unwanted & {*found, *(name.split(".")[0] for name in found)}, path


def test_one_module_asks_for_the_version_of_keras():
    for package in ("albert_keras", "data_pipeline"):
        for path in files_of(package):
            text = path.read_text(encoding="utf-8")
            asks = "_IS_KERAS_3" in text or "keras.__version__.st" in text
            assert not asks or path.name == "keras_versions.py", path
