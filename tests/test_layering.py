"""Imports point one way."""

import ast
import functools
import graphlib

import pytest

from tests.repository import PACKAGES, ROOT

#: Rooms and modules of each package from the lowest up. Within a row, none imports another.
ROWS = {
    "albert_keras": (
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
        ("serving/graph", "serving/saved_model"),
        ("serving/calls", "serving/serve_check"),
        ("serving/predictor", "serving/export"),
        ("serving/publish", "serving/kit", "serving/local"),
        ("serving", "conversion"),
        ("texts",),
        ("reports",),
        ("demo", "dry_run"),
        ("machine",),
        ("cli",),
    ),
    "data_pipeline": (
        ("errors", "lazy_names"),
        ("limits", "progress", "tensorflow_line", "randomness", "child_processes"),
        ("files", "settings"),
        ("folder_lock", "config", "text"),
        ("tokenizers",),
        ("instances",),
        ("records",),
        ("building", "reader"),
        ("reports",),
    ),
}
LEVEL = {
    package: {name: level for level, row in enumerate(rows) for name in row}
    for package, rows in ROWS.items()
}


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


@pytest.mark.parametrize("package", ROWS)
def test_each_room_imports_from_lower_ones_only(package):
    levels = LEVEL[package]

    def level_of(parts):
        """Returns the level of a module, by its room or by a part of it that has its own."""
        inner = "/".join(parts[:2])
        return levels[inner if inner in levels else parts[0]]

    for path in files_of(package):
        here = path.relative_to(PACKAGES / package).with_suffix("").parts
        if here[0].startswith("__"):
            continue
        for name in imports_of(path):
            owner, *there = name.split(".")
            if owner == package and there:
                is_lower = level_of(there) < level_of(here)
                is_same = there[0] == here[0] and level_of(there) == level_of(here)
                assert is_same or is_lower, f"{path} imports {name}"


@pytest.mark.parametrize("package", ROWS)
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
    for package in (*ROWS, "tests"):
        for path in files_of(package):
            found = imports_of(path)
            assert not unwanted & {*found, *(name.split(".")[0] for name in found)}, path


def test_one_module_asks_for_the_version_of_keras():
    for package in ROWS:
        for path in files_of(package):
            text = path.read_text(encoding="utf-8")
            asks = "_IS_KERAS_3" in text or "keras.__version__.st" in text
            assert not asks or path.name == "keras_versions.py", path
