"""Early exit from training to the SavedModel, with a small classifier."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras import FinetunedModels, Predictor, export, finetune
from albert_keras.cli import main
from albert_keras.research.analyze.early_exit import evaluate_early_exit, layers_until_confident
from albert_keras.serving.saved_model.signature_methods import read_signatures
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.conftest import SHAPE, write_toy

LAYERS = 3


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, tmp_path_factory):
    """Returns the folder of a fine-tuning with a classifier after each of three layers."""
    folder = tmp_path_factory.mktemp("exits")
    write_toy(folder / "train.tsv", tiny_corpus, 60, seed=1)
    write_toy(folder / "dev.tsv", tiny_corpus, 30, seed=2)
    task = {name: str(folder / f"{name}.tsv") for name in ("train", "dev")}
    task |= {"name": "classification", "text": "text", "label": "label", "max_seq_length": 24}
    training = {"steps": 12, "batch_size": 16, "precision": "float32", "peak_tflops": 1.0}
    config = FinetuneConfig(
        task=task | {"exit_heads": True},
        training=training | {"evaluate_every": 12},
        optimizer={"lr": 1e-3, "warmup_steps": 1},
    )
    shape = SHAPE.replace(vocab_size=tiny_tokenizer.vocab_size, num_hidden_layers=LAYERS)
    finetune(
        "random",
        folder / "run",
        config,
        albert_config=shape,
        tokenizer=tiny_tokenizer,
        bag_of_words=False,
    )
    return folder / "run"


@pytest.fixture(scope="module")
def layer_logits(tuned):
    """Returns the answers of all classifiers to the development examples, [30, L, 2], alone."""
    models = FinetunedModels(tuned, strategy="single")
    model = models.runs[0].load_model("best", precision="float32", task=models.task)
    examples = models.task.read("dev")
    features = models.task.features(examples, models.tokenizer)
    found = []
    for row in range(len(examples)):
        batch = features.batch([row], int(features.lengths[row]))
        names = ("input_ids", "input_mask", "segment_ids")
        found.append(model.logits_of_layers({name: batch[name] for name in names})[0])
    return np.stack(found), [example.first for example in examples]


def confidence_of(logits):
    """Returns a confidence that about half of the rows reach before the last layer."""
    best = tf.nn.softmax(logits[:, : LAYERS - 1]).numpy().max(axis=(1, 2))
    return round(float(np.median(best)), 4)


def test_training_changes_every_classifier(tuned):
    run = FinetunedModels(tuned, strategy="single").runs[0]
    weights = run.checkpoints.folder(run.checkpoints.best())
    reader = tf.train.load_checkpoint(str(weights / "model.ckpt"))
    names = [f"exits/layer_{number}/output_weights" for number in (1, 2)] + ["output_weights"]
    values = [reader.get_tensor(name) for name in names]
    assert {value.shape for value in values} == {(2, 32)}
    biases = [reader.get_tensor(name.replace("weights", "bias")) for name in names]
    assert all(np.abs(bias).max() > 0 for bias in biases)  # they start as zeros


def test_layers_until_confident_is_the_first_confident_layer():
    logits = np.log([[[0.6, 0.4], [0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.6, 0.4], [0.3, 0.7]]])
    np.testing.assert_array_equal(layers_until_confident(logits, 0.8), [2, 3])
    np.testing.assert_array_equal(layers_until_confident(logits, 0.55), [1, 2])
    np.testing.assert_array_equal(layers_until_confident(logits, 1.0), [3, 3])


def test_the_curve_has_scores_and_layers_of_each_confidence(tuned, layer_logits, capsys):
    logits, _ = layer_logits
    middle = confidence_of(logits)
    words = ["evaluate", "--run", str(tuned), "--exit-at-confidence", f"1.0,0.5,{middle}"]
    assert main([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    points = printed["points"]
    assert [point["confidence"] for point in points] == [0.5, middle, 1.0]
    # Of two classes the better one always has at least one half.
    assert points[0]["mean_layers"] == 1 and points[0]["exits"] == [1, 0, 0]
    assert points[0]["score"] == printed["layer_scores"][0]
    assert points[2]["mean_layers"] == LAYERS and points[2]["points_lost"] == 0
    layers = layers_until_confident(logits, middle)
    assert 1 < layers.mean() < LAYERS
    assert points[1]["mean_layers"] == pytest.approx(layers.mean())
    assert main(words) == 0
    assert "points lost" in capsys.readouterr().out


@pytest.mark.slow  # exports
def test_the_export_stops_where_the_python_path_does(tuned, layer_logits, tmp_path):
    logits, texts = layer_logits
    confidence = confidence_of(logits)
    result = export(tuned, tmp_path / "toy", exit_at_confidence=confidence)
    record = json.loads((result.path / "export.json").read_text())
    assert record["exit_at_confidence"] == confidence
    outputs = {one.name: set(one.outputs) for one in read_signatures(result.path)}
    assert "layers" in outputs["serving_default"] and "layers" in outputs["predict_tokens"]
    expected = layers_until_confident(logits, confidence)
    loaded = tf.saved_model.load(str(result.path)).signatures["serving_default"]
    found = loaded(text=tf.constant(texts))
    np.testing.assert_array_equal(found["layers"], expected)
    chosen = logits[np.arange(len(texts)), expected - 1]
    np.testing.assert_allclose(found["probabilities"], tf.nn.softmax(chosen), atol=1e-4)
    answers = Predictor(tmp_path / "toy").answer([{"text": text} for text in texts[:3]])
    assert [answer.probability for answer in answers] == pytest.approx(
        tf.nn.softmax(chosen).numpy().max(axis=1)[:3], abs=1e-4
    )
    model = keras.models.load_model(result.keras_file)
    assert model.exit_at_confidence == confidence


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"exit_at_confidence": 0.0}, "above 0 and at most 1. Received: 0.0"),
        ({"exit_at_confidence": 1.5}, "above 0 and at most 1. Received: 1.5"),
        ({"exit_at_confidence": 0.9, "precision": "bfloat16"}, "requires the precision float32"),
    ],
)
def test_an_impossible_export_is_refused(tuned, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        export(tuned, tmp_path / "toy", **arguments)
    assert not any(tmp_path.glob("toy/[0-9]*"))


def test_models_without_the_classifiers_are_refused(tiny_run, tuned, tmp_path, capsys):
    with pytest.raises(InputError, match="requires a classifier after every layer"):
        export(tiny_run, tmp_path / "toy", exit_at_confidence=0.9)
    words = ["evaluate", "--run", str(tiny_run), "--exit-at-confidence", "0.9"]
    assert main(words) == 2
    assert "requires a fine-tuned model" in capsys.readouterr().err
    assert main([*words[:2], str(tuned), *words[3:], "--out", "x"]) == 2
    assert "`--out` must not be given" in capsys.readouterr().err
    assert main([*words[:2], str(tuned), "--exit-at-confidence", "high"]) == 2
    assert "must be probabilities separated by commas" in capsys.readouterr().err
    with pytest.raises(InputError, match="at least one probability"):
        evaluate_early_exit(tuned, [])


def test_only_classification_has_exit_heads():
    for name in ("sts-b", "squad1", "race"):
        with pytest.raises(InputError, match="`exit_heads` requires a task with one of several"):
            build_task(TaskConfig(name=name, exit_heads=True))
    assert build_task(TaskConfig(name="sst-2", exit_heads=True)).model_settings
