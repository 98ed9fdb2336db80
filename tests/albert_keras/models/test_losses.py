"""The losses of text models are their formulas, whatever form labels and examples have."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from albert_keras.models.text_data import Reader
from tests.albert_keras.tasks.test_text_model import KINDS, LABELS, TEXTS, preset
from tests.keras_line import IS_KERAS_3
from tests.parameters import slow

SORTER = "AlbertForClassification"
Y = np.array([label == "yes" for label in LABELS[:8]]).astype(int)
#: By name: the class, its arguments, texts and labels of eight examples.
MODELS = {
    SORTER: (SORTER, {"labels": ["no", "yes"]}, TEXTS[:8], Y),
    **{name: (name, *rest) for name, rest in KINDS.items() if name != "AlbertForSimilarity"},
    "none": (
        "AlbertForQuestionAnswering",
        {"can_be_none": True},
        KINDS["AlbertForQuestionAnswering"][1],
        ["noon", None, "the ferry", "harbour"] * 2,
    ),
}
WEIGHTS = np.linspace(0.1, 2.0, 8).astype("float32")
FIT = {"batch_size": 3, "shuffle": False, "verbose": 0}


def model_of(kind, tokenizer, **words):
    name, arguments, *_ = MODELS[kind]
    return preset(tokenizer, name, **{"seed": 1, "head_dropout": 0.0} | arguments | words)


def cross_entropy(scores, labels):
    """Returns the loss of each row of scores, or of logarithms of probabilities, [..., T]."""
    logarithms = log_softmax(scores, axis=-1)
    return -np.take_along_axis(logarithms, labels[..., None], axis=-1)[..., 0]


def losses_of(kind, outputs, labels):
    """Returns the loss of each row, or of each position, with NumPy."""
    if isinstance(outputs, dict):  # the mean of both edges, or half the sum with that of no answer
        names = [name for name in labels if name != "null_logits"]
        parts = [cross_entropy(outputs[name], labels[name]) for name in names]
        if kind == "none":
            logits = outputs["null_logits"]
            parts.append(np.logaddexp(0, logits) - labels["null_logits"] * logits)
        return sum(parts) / 2
    if kind == "AlbertForMultiLabel":
        return -np.log(np.where(labels == 1, outputs, 1 - outputs)).mean(axis=-1)
    if kind == "AlbertForRegression":
        return np.square(outputs[:, 0] - labels)
    return cross_entropy(np.log(outputs), labels)


@pytest.mark.parametrize("kind", [SORTER, *slow(*(kind for kind in MODELS if kind != SORTER))])
def test_the_loss_is_the_weighted_mean_of_its_formula(kind, tiny_tokenizer, eagerly):
    model = model_of(kind, tiny_tokenizer)
    x, y = MODELS[kind][2:]
    examples = model.examples(x, y, WEIGHTS)
    # `fit` begins with the frequencies of tags.
    model.initialize_output_bias(model.targets(examples.labels, examples.columns))
    rows, labels, weights = Reader(model, examples).arrays(is_fixed=True)
    losses = losses_of(kind, tf.nest.map_structure(np.array, model(rows)), labels)
    if kind == "AlbertForTokenClassification":
        at_words = rows["word_mask"] > 0
        losses, weights = losses[at_words], (weights[:, None] * at_words)[at_words]
    model.compile(keras.optimizers.SGD(0.0), metrics=None)
    given = {"sample_weight": WEIGHTS, "batch_size": 32, "verbose": 0}
    found = model.evaluate(x, y, return_dict=True, **given)["loss"]
    trained = model.fit(x, y, shuffle=False, **given).history["loss"]
    assert [found, *trained] == pytest.approx([np.mean(weights * losses)] * 2, rel=1e-4)


def test_a_narrow_type_is_that_of_the_encoder_alone(tiny_tokenizer, eagerly):
    for kind, texts in ((SORTER, TEXTS[:2]), ("AlbertForTokenClassification", [["a"]])):
        model = model_of(kind, tiny_tokenizer, dtype="mixed_bfloat16")
        found = model.predict(texts, verbose=0)
        assert model.encoder.compute_dtype == "bfloat16" and found.dtype == "float32"
        assert np.any(found != tf.cast(tf.cast(found, "bfloat16"), "float32"))


def test_names_may_stand_beside_features(tiny_tokenizer, eagerly):
    model = model_of(SORTER, tiny_tokenizer)
    names, features = np.array(LABELS[:8]), model.preprocessor(TEXTS[:8])
    expected = model.evaluate(features, Y, verbose=0)
    for given in (names, names.tolist(), names.astype(object), tf.constant(names)):
        assert model.evaluate(features, given, verbose=0) == pytest.approx(expected)
    several = model_of("AlbertForMultiLabel", tiny_tokenizer)
    lists = MODELS["AlbertForMultiLabel"][3]
    expected = several.evaluate(TEXTS[:8], lists, verbose=0)
    assert several.evaluate(features, lists, verbose=0) == pytest.approx(expected, rel=1e-4)


def similarity_of(vectors, scores=None):
    """Returns the loss of a batch of pairs with NumPy."""
    first, second = vectors[:, 0], vectors[:, 1]
    if scores is None:
        logits = first @ second.T / 0.05
        return np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    cosines = (first * second).sum(axis=1) / 0.05
    numbers = range(len(scores))
    pairs = [(i, j) for i in numbers for j in numbers if scores[i] > scores[j]]
    return np.log(1 + sum(np.exp(cosines[j] - cosines[i]) for i, j in pairs))


@pytest.mark.parametrize("scores", [None, [0.0, 1.0, 2.0, 5.0] * 2], ids=["pairs", "scores"])
def test_pairs_are_compared_with_the_rows_that_are_there(scores, tiny_tokenizer, eagerly):
    model = preset(tiny_tokenizer, "AlbertForSimilarity", seed=1)
    x = TEXTS[:8], [f"{text} {at}" for at, text in enumerate(TEXTS[4:12])]
    vectors = np.array(model.outputs_of(model.preprocessor(x))["vectors"], "float64")
    model.compile(keras.optimizers.SGD(0.0))
    for size in (8, 5):
        parts = [slice(0, 8)] if size == 8 else [slice(0, 5), slice(5, 8)]
        losses = [similarity_of(vectors[at], scores and scores[at]) for at in parts]
        expected = np.average(losses, weights=[at.stop - at.start for at in parts])
        assert model.evaluate(x, scores, size, verbose=0) == pytest.approx(expected, rel=1e-4)
        found = model.fit(x, scores, size, shuffle=False, verbose=0).history["loss"][0]
        assert found == pytest.approx(expected, rel=1e-4)
    if scores is not None:
        model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mae"])
        errors = (vectors[:, 0] * vectors[:, 1]).sum(axis=1) - scores
        expected = [np.mean(WEIGHTS * errors**2), np.abs(errors).mean()]
        found = model.evaluate(x, scores, sample_weight=WEIGHTS, verbose=0)
        assert found == pytest.approx(expected, rel=1e-4)


def test_dropout_and_new_weights_follow_the_seed_of_keras(tiny_tokenizer, eagerly):
    def loss(number, **words):
        keras.utils.set_random_seed(number)
        model = model_of(SORTER, tiny_tokenizer, **{"seed": None, "head_dropout": 0.5} | words)
        model.compile(keras.optimizers.SGD(0.0))
        return model.fit(TEXTS[:8], Y, **FIT).history["loss"][0]

    assert loss(1) == loss(1) != loss(2)
    assert loss(1, seed=4) == loss(1, seed=4)


@pytest.mark.slow
def test_pairs_of_two_replicas_are_compared_with_each_other(tiny_vocabulary):
    program = f"""
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.albert_keras.models.test_losses import *
import albert_keras
tokenizer = albert_keras.load_tokenizer({str(tiny_vocabulary.path)!r})
strategies = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), tf.distribute.get_strategy()
(arguments, x, y), found = KINDS["AlbertForSimilarity"], []
for strategy in strategies:
    with strategy.scope():
        model = preset(tokenizer, "AlbertForSimilarity", seed=1)
        model.compile(keras.optimizers.SGD(0.05), metrics=["mae"])
    history = model.fit(x, y, 8, 2, shuffle=False, verbose=0).history
    found.append([*history.values(), model.evaluate(x, y, 8, verbose=0)])
for one, other in zip(*map(tf.nest.flatten, found), strict=True):
    np.testing.assert_allclose(one, other, atol=1e-4)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
def test_models_are_parts_of_models_and_are_exported(tiny_tokenizer, tmp_path):
    texts = keras.Input((), dtype="string")
    parts = [model_of(SORTER, tiny_tokenizer, seed=seed) for seed in (1, 2)]
    whole = keras.Model(texts, keras.layers.Average()([part(texts) for part in parts]))
    expected = np.mean([part.predict(TEXTS[:2], verbose=0) for part in parts], axis=0)
    given = tf.constant(TEXTS[:2])
    np.testing.assert_allclose(whole(given), expected, atol=1e-6)
    settings = {"format": "tf_saved_model", "verbose": False} if IS_KERAS_3 else {}
    for number, model in enumerate((parts[0], whole)):
        model.export(str(tmp_path / str(number)), **settings)
        again = tf.saved_model.load(str(tmp_path / str(number)))
        np.testing.assert_allclose(again.serve(given), model(given), atol=1e-6)
