"""Fine-tuned models that answer."""

import json
import shutil
from pathlib import Path

import pytest

from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.predict import answering
from data_pipeline.limits import read_json


@pytest.fixture(scope="module")
def tuned(tuned_toy):
    """Returns the folder of a fine-tuning to two classes."""
    return Path(tuned_toy.path)


@pytest.fixture(scope="module")
def model(tuned):
    """Returns a function that answers inputs by the model of the best seed."""
    run = open_run(tuned)
    task, model = task_of(run), open_finetuned(run)
    return lambda inputs: answering(task, model)(task.typed_examples(inputs))


def test_a_fine_tuning_means_its_best_seed(tuned, tmp_path):
    copy = shutil.copytree(tuned, tmp_path / "copy")
    results = read_json(copy / "results.json")
    [first] = results["seeds"]
    shutil.copytree(copy / first["path"], copy / "seed-2")
    scores = [{"dev": {"accuracy": accuracy}} for accuracy in (0.25, 0.75)]
    paths = zip((first["path"], "seed-2"), scores, strict=True)
    results["seeds"] = [first | {"path": path, "scores": one} for path, one in paths]
    (copy / "results.json").write_text(json.dumps(results))
    assert open_run(copy).path == copy / "seed-2"


def test_answers_keep_the_ids_of_what_was_asked(model):
    inputs = [{"id": "k7", "text": "Rain."}, "Rain.", {"text": "Rain."}, {"id": 9, "text": "Rain."}]
    answers = model(inputs)
    assert [answer.id for answer in answers] == ["k7", "1", "2", "9"]
    assert inputs[0] == {"id": "k7", "text": "Rain."}
