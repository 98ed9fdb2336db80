"""Fine-tuning of a head on a frozen encoder, from the examples to answers and an export."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.runs.run import Run
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.saved_model.server_ops import check_ops
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.predict import predict_task
from tests.albert_keras.checkpoint_tensors import assert_same, tensors_of
from tests.albert_keras.serving.small_exports import write_export
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import make_task


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
    tune(out, config, origin)
    return out


def checkpoint_of(folder, step):
    return tensors_of(next(folder.glob("seed-*")), step)


def test_the_encoder_is_the_same_to_the_bit_and_the_head_is_not(frozen, tuned_toy):
    [seed] = tuned_toy.seeds
    origin = tensors_of(f"{tuned_toy.path}/{seed.path}", seed.best_step)
    first, last = (checkpoint_of(frozen, step) for step in (20, 40))
    of_encoder = [name for name in first if name.startswith("bert/")]
    assert of_encoder and not any("adam_" in name for name in of_encoder)
    for name in of_encoder:
        np.testing.assert_array_equal(origin[name], last[name])
    for name in ("output_weights", "output_bias"):
        assert np.abs(first[name] - last[name]).max() > 0, name


def test_it_learns_answers_and_is_scored(frozen):
    result = json.loads((frozen / "results.json").read_text())
    score = result["seeds"][0]["scores"]["dev"]["accuracy"]
    assert score > 0.8
    assert evaluate_task(frozen).scores["accuracy"] == score
    answers = predict_task(frozen, ["The harbour .", "A window ."]).answers
    assert [answer.label for answer in answers] == ["yes", "no"]


def test_an_interrupted_training_ends_with_the_same_weights(
    frozen, tune, tuned_toy, config, tmp_path
):
    origin = f"{tuned_toy.path}/{tuned_toy.seeds[0].path}"
    out = shutil.copytree(frozen, tmp_path / "out")
    (out / "results.json").unlink()
    checkpoints = Run.open(next(out.glob("seed-*"))).checkpoints
    shutil.rmtree(checkpoints.folder(40))
    assert checkpoints.steps() == [20]
    tune(out, config, origin)
    assert_same(checkpoint_of(out, 40), checkpoint_of(frozen, 40))


def test_a_server_has_the_operations_of_the_head(tiny_tokenizer, features_of, tmp_path):
    task, shape = make_task("tagging"), SHAPE.replace(initializer_range=0.5)
    settings = {"freeze_encoder": True, "combine": "weighted-sum"}
    shape = shape.replace(num_hidden_layers=2)
    model = task.build_model(shape, tiny_tokenizer, features=settings, seed=0)
    write_export(tmp_path / "1", task, model, tiny_tokenizer)
    check_ops(tmp_path / "1")
    inputs = features_of("tagging").batch(np.arange(3))
    expected = model.outputs_of(inputs)["logits"]
    for precision, tolerance in (("float32", 1e-5), ("int8", 0.5)):
        module = TaskModel(model, precision)
        found = module.stored.outputs(inputs)["logits"]
        np.testing.assert_allclose(found, expected, atol=tolerance)
