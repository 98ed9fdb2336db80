"""Fine-tuning of a head on a frozen encoder, from the examples to answers and an export."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.formats.open_model import open_model
from albert_keras.runs.run import Run
from albert_keras.serving.graph.task_models import build_task_model
from albert_keras.serving.saved_model.server_ops import check_ops
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.predict import predict_task
from tests.albert_keras.serving.small_exports import write_export
from tests.albert_keras.tasks.small_tasks import build_model, make_examples, make_task

FROZEN = ("choice", "classification", "multi_label", "regression", "spans", "spans_or_none")
FROZEN += ("tagging", "multi_regression")


@pytest.fixture(scope="module")
def config(toy_config):
    """Returns settings that train a head on the frozen encoder of the toy."""
    return toy_config.replace(
        model={"freeze_encoder": True, "combine": "weighted-sum"},
        training=toy_config.training.replace(
            steps=40,
            evaluate_every=20,
            checkpoint_every=20,
            keep_checkpoints=2,
            keep_optimizer_state=True,
        ),
        optimizer={"lr": 1e-2},
    )


@pytest.fixture(scope="module")
def frozen(tune, tuned_toy, config, tmp_path_factory):
    """Returns the folder of a fine-tuning of a head, from the encoder of another fine-tuning."""
    out = tmp_path_factory.mktemp("frozen") / "out"
    origin = f"{tuned_toy.path}/{tuned_toy.seeds[0].path}"
    tune(out, config, origin, random_baseline=False, bag_of_words=False)
    return out


def run_of(folder):
    return Run.open(next(folder.glob("seed-*")))


def checkpoint_of(folder, step):
    run = run_of(folder)
    return open_model(run.checkpoints.folder(step)).tensors


def test_the_encoder_is_the_same_to_the_bit_and_the_head_is_not(frozen, tuned_toy):
    origin = open_model(f"{tuned_toy.path}/{tuned_toy.seeds[0].path}").tensors
    first, last = (checkpoint_of(frozen, step) for step in (20, 40))
    of_encoder = [name for name in first.shapes if name.startswith("bert/")]
    assert of_encoder and not any("adam_" in name for name in of_encoder)
    for name in of_encoder:
        np.testing.assert_array_equal(origin.read(name), last.read(name))
    for name in ("output_weights", "output_bias"):
        assert np.abs(first.read(name) - last.read(name)).max() > 0, name


def test_it_learns_answers_and_is_scored(frozen):
    result = json.loads((frozen / "results.json").read_text())
    score = result["seeds"][0]["scores"]["dev"]["accuracy"]
    assert score > 0.8
    assert evaluate_task(frozen, bag_of_words=False).scores["accuracy"] == score
    answers = predict_task(frozen, ["The harbour .", "A window ."]).answers
    assert [answer.label for answer in answers] == ["yes", "no"]


def test_an_interrupted_training_ends_with_the_same_weights(
    frozen, tune, tuned_toy, config, tmp_path
):
    origin = f"{tuned_toy.path}/{tuned_toy.seeds[0].path}"
    out = shutil.copytree(frozen, tmp_path / "out")
    (out / "results.json").unlink()
    shutil.rmtree(run_of(out).checkpoints.folder(40))
    assert run_of(out).checkpoints.steps() == [20]
    tune(out, config, origin, random_baseline=False, bag_of_words=False)
    once, twice = (checkpoint_of(folder, 40) for folder in (frozen, out))
    for name in once.shapes:
        np.testing.assert_array_equal(once.read(name), twice.read(name), err_msg=name)


def frozen_model(kind, shape):
    task = make_task(kind)
    settings = {"freeze_encoder": True, "combine": "weighted-sum"}
    shape = shape.replace(num_hidden_layers=2, initializer_range=0.5)
    return task, build_model(kind, shape, task.num_outputs, features=settings)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "tagging" else pytest.mark.slow) for kind in FROZEN],
)
def test_a_server_has_the_operations_of_the_head(
    kind, small_shape, tiny_tokenizer, tiny_corpus, tmp_path
):
    task, model = frozen_model(kind, small_shape)
    write_export(tmp_path / "1", task, model, tiny_tokenizer)
    check_ops(tmp_path / "1")
    features = task.features(make_examples(tiny_corpus, kind, 3), tiny_tokenizer)
    inputs = features.batch(np.arange(len(features)))
    expected = model(inputs)
    for precision, tolerance in (("float32", 1e-5), ("int8", 0.5)):
        module = build_task_model(model, tiny_tokenizer, task, precision)
        found = module.stored.outputs({name: inputs[name] for name in inputs})
        for name, values in expected.items():
            if "indices" not in name:
                np.testing.assert_allclose(found[name], values, atol=tolerance, err_msg=name)
