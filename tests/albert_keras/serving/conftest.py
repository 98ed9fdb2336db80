"""Models and exports for all tests of the folder."""

import functools
import shutil

import pytest

from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import make_task


@pytest.fixture(scope="session")
def small_export(tiny_run, tmp_path_factory):
    """Returns the ExportResult of int8 weights, with both TensorFlow Lite files."""
    out = tmp_path_factory.mktemp("saved_models") / "small"
    lite = ["float16", "int8"]
    return export(tiny_run, out, precision="int8", lite=lite)


@pytest.fixture(scope="session")
def predictor(tiny_export):
    """Returns the Predictor of `tiny_export`; its sequences have at most 32 tokens."""
    return Predictor(tiny_export)


@pytest.fixture(scope="session")
def of_kind(tiny_tokenizer):
    """Returns a function of a kind that gives its task, model and TaskModel, made once."""

    @functools.cache
    def of_kind(kind):
        task = make_task(kind)
        model = make_model(task, tiny_tokenizer)
        return task, model, TaskModel(model)

    return of_kind


@pytest.fixture(scope="session")
def run_of_kind(of_kind, tiny_tokenizer, tiny_corpus, made_once):
    """Returns a function of a kind that gives the folder of a fine-tuned run of its model."""

    def run_of_kind(kind):
        task, model, _ = of_kind(kind)
        return made_once(
            f"run-{kind}",
            lambda folder: write_run(folder, task, model, tiny_tokenizer, tiny_corpus),
        )

    return run_of_kind


@pytest.fixture(scope="session")
def pairs_export(run_of_kind, made_once):
    """Returns the folder of the exported model that classifies pairs."""
    return made_once("pairs", lambda folder: export(run_of_kind("classification"), folder))


@pytest.fixture(scope="session")
def pairs_predictor(pairs_export):
    """Returns the Predictor of `pairs_export`."""
    return Predictor(pairs_export)


@pytest.fixture
def changed_export(contract_export, tmp_path):
    """Returns a copy of a small SavedModel without records, to be changed."""
    return shutil.copytree(contract_export / "3", tmp_path / "books" / "3")
