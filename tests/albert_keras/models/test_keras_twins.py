"""Text models beside functional models of Keras over the same features, with the same weights."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.task_heads import SpansHead, SpansOrNoneHead
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
        "AlbertForSpans",
        {"can_be_none": True},
        KINDS["AlbertForSpans"][1],
        ["noon", None, "the ferry", "harbour"] * 2,
    ),
}
WEIGHTS = np.linspace(0.1, 2.0, 8).astype("float32")
FIT = {"batch_size": 3, "shuffle": False, "verbose": 0}
OF_KERAS = {"AlbertForMultiLabel": "binary_crossentropy", "AlbertForRegression": "mse"}


class WithMask(keras.layers.Layer):
    """Marks the positions at which words begin, as layers of Keras mark what counts."""

    def compute_mask(self, inputs, mask=None):
        return inputs[1] > 0

    def call(self, inputs):
        return inputs[0] + 0.0

    def compute_output_shape(self, shapes):
        return shapes[0]


class Rows(keras.layers.Layer):
    """Reshapes to rows of a width."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def call(self, inputs):
        return tf.reshape(inputs, [-1, self.width])

    def compute_output_spec(self, inputs):
        return keras.KerasTensor((None, self.width), inputs.dtype)


class Head(keras.layers.Layer):
    """A head of spans as a layer of a functional model."""

    def __init__(self, head):
        super().__init__(dtype="float32")
        self.head = head

    def call(self, inputs):
        found = self.head(*inputs)
        if "null_logits" in found:  # a loss of Keras takes the mean over the last axis
            found["null_logits"] = found["null_logits"][:, None]
        return found

    def compute_output_spec(self, inputs):
        rows, length = inputs[0].shape[:-1]
        if isinstance(self.head, SpansHead):
            shapes = dict.fromkeys(("start_logits", "end_logits"), (rows, length))
        else:
            shapes = dict.fromkeys(("start_log_probs", "end_log_probs"), (rows, length))
            shapes["null_logits"] = (rows, 1)
        return {name: keras.KerasTensor(shape, "float32") for name, shape in shapes.items()}


def model_of(kind, tokenizer, **words):
    name, arguments, *_ = MODELS[kind]
    return preset(tokenizer, name, **{"seed": 1, "head_dropout": 0.0} | arguments | words)


def twin_of(model, rows):
    """Returns a functional model of layers of Keras over features, with the weights of a model."""
    inputs = {
        name: keras.Input(each.shape[1:], dtype=each.dtype.name, name=name)
        for name, each in rows.items()
    }
    dtype, kind = model.dtype_policy, type(model).__name__
    encoder = AlbertEncoder(model.config, pooler=model.encoder.pooler is not None, dtype=dtype)
    encoder.set_weights(model.encoder.get_weights())
    if kind in ("AlbertForSpans", "AlbertForTagging"):
        encoder.pooler.trainable = False  # no loss depends on it
    of_encoder = {name: inputs[name] for name in ("input_ids", "input_mask", "segment_ids")}
    if kind == "AlbertForSpans":
        if model.can_be_none:
            head = SpansOrNoneHead(model.config, 0.0, dtype=dtype)
        else:
            head = SpansHead(model.config, dtype=dtype)
        head.set_weights(model.head.get_weights())
        found = Head(head)([encoder(of_encoder)["sequence_output"], inputs])
        named = {
            name: keras.layers.Activation("linear", name=name, dtype="float32") for name in found
        }
        return keras.Model(inputs, {name: named[name](each) for name, each in found.items()})
    is_choice, is_tagger = kind == "AlbertForMultipleChoice", kind == "AlbertForTagging"
    if is_choice:
        length = rows["input_ids"].shape[-1]
        of_encoder = {name: Rows(length)(each) for name, each in of_encoder.items()}
    weights, bias = model.head.get_weights()
    usual = {"AlbertForMultiLabel": "sigmoid", "AlbertForRegression": None}
    activation = None if is_choice else usual.get(kind, "softmax")
    dense = keras.layers.Dense(
        len(bias), activation, kernel_initializer="zeros", dtype="float32", name="dense"
    )
    outputs = dense(encoder(of_encoder)["sequence_output" if is_tagger else "pooled_output"])
    dense.set_weights([weights.T, bias])
    if is_tagger:
        outputs = WithMask(dtype="float32")([outputs, inputs["word_mask"]])
    if is_choice:
        outputs = Rows(rows["input_ids"].shape[1])(outputs)
        outputs = keras.layers.Softmax(dtype="float32")(outputs)
    return keras.Model(inputs, outputs)


def loss_of(kind):
    """Returns the loss of Keras that a model has, and what belongs to it in `compile`."""
    if kind not in ("AlbertForSpans", "none"):
        return {"loss": OF_KERAS.get(kind, "sparse_categorical_crossentropy")}
    of_edge = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    if kind == "none":
        losses = {"start_log_probs": of_edge, "end_log_probs": of_edge}
        losses["null_logits"] = keras.losses.BinaryCrossentropy(from_logits=True)
    else:
        losses = {"start_logits": of_edge, "end_logits": of_edge}
    return {"loss": losses, "loss_weights": dict.fromkeys(losses, 0.5)}


def same_of_both(kind, tokenizer, run, words=None, **settings):
    """Runs the same on a model and on its twin, and compares; `run` takes the model and data."""
    model = model_of(kind, tokenizer, **words or {})
    x, y = MODELS[kind][2:]
    examples = model.examples(x, y, WEIGHTS)
    # `fit` begins with the frequencies of tags, which is ours.
    model.initialize_output_bias(model.targets(examples.labels, examples.columns))
    rows, labels, weights = Reader(model, examples).arrays(is_fixed=True)
    if kind == "AlbertForTagging":
        weights = weights[:, None]  # Keras 3 needs the rank of the mask
    twin, found = twin_of(model, rows), []
    for each, *data in ((model, x, y, WEIGHTS), (twin, rows, labels, weights)):
        usual = {} if each is model else loss_of(kind)
        usual |= {"metrics": None} | settings
        given = settings.get("optimizer", keras.optimizers.SGD(0.05))
        usual["optimizer"] = type(given).from_config(given.get_config())  # one for each
        keras.utils.set_random_seed(3)
        each.compile(**usual)
        found.append(run(each, *data))
    tf.nest.assert_same_structure(*found)
    for one, other in zip(*map(tf.nest.flatten, found), strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4, rtol=1e-3)


def trained(model, x, y, weights):
    settings = FIT | {"batch_size": 5, "epochs": 2, "validation_data": (x, y)}
    return model.fit(x, y, sample_weight=weights, **settings).history


KINDS_TO_TEST = [SORTER, *slow(*(kind for kind in MODELS if kind != SORTER))]


@pytest.mark.parametrize("kind", KINDS_TO_TEST)
def test_every_model_learns_and_scores_as_its_twin(kind, tiny_tokenizer, eagerly):
    same_of_both(kind, tiny_tokenizer, trained)


def history(**settings):
    def run(model, x, y, weights):
        return model.fit(x, y, **FIT | settings).history

    return run


def soft(model, x, y, weights):
    shares = np.stack([np.linspace(0, 1, 8), np.linspace(1, 0, 8)], axis=1).astype("float32")
    return model.fit(x, shares, **FIT).history


def added(model, x, y, weights):
    head = model.head if hasattr(model, "head") else model.get_layer("dense")
    kernel, penalty = head.trainable_weights[0], keras.regularizers.L2(3.0)
    if IS_KERAS_3:
        kernel.regularizer = penalty
    else:
        model.add_loss(lambda: penalty(kernel))
    return history()(model, x, y, weights)


def of_data_set(model, x, y, weights):
    data = tf.data.Dataset.from_tensor_slices((x, y, weights)).batch(5)
    found = model.fit(data, validation_data=data, shuffle=False, verbose=0).history
    return found, model.evaluate(data, verbose=0)


def of_generator(model, x, y, weights):
    def batches():
        for begin in (0, 3, 6, 0, 3, 6):
            here = slice(begin, begin + 3)
            is_dict = isinstance(x, dict)
            part = {name: each[here] for name, each in x.items()} if is_dict else x[here]
            yield part, y[here], weights[here]

    return model.fit(batches(), steps_per_epoch=3, epochs=2, shuffle=False, verbose=0).history


def frozen(model, x, y, weights):
    encoders = [layer for layer in model.layers if isinstance(layer, AlbertEncoder)]
    encoders[0].trainable = False
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    return history()(model, x, y, weights)


def seen_by_a_callback(model, x, y, weights):
    seen = []
    show = keras.callbacks.LambdaCallback()
    show.on_predict_batch_end = lambda batch, logs: seen.append(np.array(logs["outputs"]))
    found = model.predict(x, 3, verbose=0, callbacks=[show])
    np.testing.assert_allclose(np.concatenate(seen), found, atol=1e-6)
    return seen


OPTIONS = {
    "soft labels": (soft, {"loss": "kld"}),
    "class weights": (history(class_weight={0: 1.0, 1: 3.0}), {}),
    "several steps": (history(), {"steps_per_execution": 2}),
    "split": (history(validation_split=0.4), {"metrics": ["accuracy"]}),
    "two accuracies": (
        history(sample_weight=WEIGHTS),
        {"metrics": ["accuracy"], "weighted_metrics": ["accuracy"]},
    ),
    "added loss": (added, {}),
    "data set": (of_data_set, {}),
    "generator": (of_generator, {}),
    "frozen": (frozen, {}),
    "callback of predict": (seen_by_a_callback, {}),
    "predict in part": (lambda model, x, *_: model.predict(x, 3, steps=2, verbose=0), {}),
    "clipping": (history(), {"optimizer": keras.optimizers.SGD(1.0, global_clipnorm=0.1)}),
}


#: What Keras' step does in ways of its own; the other options are slow tests.
USUAL = ("several steps", "two accuracies", "added loss", "callback of predict")


@pytest.mark.parametrize("name", [*USUAL, *slow(*(name for name in OPTIONS if name not in USUAL))])
def test_every_option_does_what_it_does_in_keras(name, tiny_tokenizer, eagerly):
    run, settings = OPTIONS[name]
    same_of_both(SORTER, tiny_tokenizer, run, **settings)


def test_a_narrow_type_is_that_of_the_encoder_alone(tiny_tokenizer, eagerly):
    words = {"dtype": "mixed_bfloat16"}
    same_of_both(SORTER, tiny_tokenizer, history(), words, metrics=["accuracy"])
    tagger = model_of("AlbertForTagging", tiny_tokenizer, **words)
    assert tagger.predict([["a"]], verbose=0).dtype == "float32"


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
from tests.albert_keras.models.test_keras_twins import *
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
