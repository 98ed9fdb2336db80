"""Models of texts as Keras users take them: whatever `fit` takes, and what it gives."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import albert_keras
from albert_keras.models.text_classifiers import AlbertForClassification
from albert_keras.optimization.schedules import WarmupPolynomialDecay
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.conftest import SHAPE
from tests.keras_line import IS_KERAS_3
from tests.parameters import slow

TEXTS = ["the harbour was full", "a window was open", "no harbour here", "the window broke"] * 4
LABELS = ["yes", "no"] * 8
NUMBERS = [1, 0] * 8
WEIGHTS = np.linspace(0, 2, 16)
FIT = {"epochs": 2, "batch_size": 8, "verbose": 0}
CONTEXTS = ["the ferry left the harbour at noon, " * 3] * 8
WORDS = [text.split() for text in TEXTS[:8]]
TAGS = [["O", "B-X", "O", "O"], ["O", "O", "O", "B-X"], ["O", "O", "B-X"], ["O", "O", "O"]] * 2
#: By class: the arguments of the model, inputs, and labels.
KINDS = {
    "AlbertForMultiLabel": ({"labels": ["x", "y"]}, TEXTS[:8], [["x"], [], ["x", "y"], ["y"]] * 2),
    "AlbertForRegression": ({}, (TEXTS[:8], TEXTS[8:]), [0.5, 1, 2.5, 3] * 2),
    "AlbertForTokenClassification": ({"labels": ["O", "B-X"]}, WORDS, TAGS),
    "AlbertForQuestionAnswering": ({}, (CONTEXTS, ["when did it leave"] * 8), ["noon"] * 8),
    "AlbertForMultipleChoice": (
        {},
        (CONTEXTS, ["what left"] * 8, [["a ferry", "a window"]] * 8),
        [0, 1] * 4,
    ),
    "AlbertForSimilarity": ({}, (TEXTS[:8], TEXTS[8:]), [0.0, 1.0, 2.0, 5.0] * 2),
}


class Frame:
    """What a table of pandas has in common with other tables."""

    def __init__(self, **columns):
        self._columns, self.columns = columns, [*columns]

    def __getitem__(self, name):
        if isinstance(name, list):
            return Frame(**{each: self._columns[each] for each in name})
        return Series(self._columns[name])

    def to_numpy(self):
        return np.array([*self._columns.values()], object).T


class Series:
    """The same of a column."""

    def __init__(self, values):
        self._values = values

    def tolist(self):
        return list(self._values)


def preset(tokenizer, name="AlbertForClassification", **words):
    """Builds an untrained model, as `from_preset` does with trained weights."""
    model_class = getattr(albert_keras, name)
    preprocessor = model_class.preprocessor_class(tokenizer, words.pop("sequence_length", 16))
    return model_class(SHAPE, preprocessor=preprocessor, **words)


@pytest.fixture
def model(tiny_tokenizer):
    """Returns an untrained model of two classes."""
    return preset(tiny_tokenizer, labels=["no", "yes"])


def data(*parts, size=None):
    found = tf.data.Dataset.from_tensor_slices(parts)
    return found if size is None else found.batch(size)


def batches(*parts, size=4):
    for begin in range(0, len(parts[0]), size):
        yield tuple(part[begin : begin + size] for part in parts)


class Batches(keras.utils.Sequence):
    """Batches by their numbers."""

    def __len__(self):
        return 4

    def __getitem__(self, number):
        here = slice(4 * number, 4 * number + 4)
        return TEXTS[here], LABELS[here]


class Pairs(Batches):
    """The same, of pairs."""

    def __getitem__(self, number):
        texts, labels = super().__getitem__(number)
        return (texts, texts), labels


# Keras 3 says this of all data whose length is unknown.
@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "name",
    [
        "AlbertForTokenClassification",
        *slow("AlbertForQuestionAnswering", "AlbertForMultipleChoice"),
    ],
)
def test_data_sets_and_generators_give_the_features_of_lists(name, tiny_tokenizer, eagerly):
    arguments, inputs, labels = KINDS[name]
    model = preset(tiny_tokenizer, name, **arguments)
    expected = model.evaluate(inputs, labels, verbose=0)
    is_ragged = name == "AlbertForTokenClassification"
    tensors = tf.ragged.constant if is_ragged else tf.constant
    parts = (tensors(inputs) if is_ragged else tuple(map(tensors, inputs)), tensors(labels))
    # Keras averages over the words of a batch, and then over the windows of all batches.
    error = 1e-2 if is_ragged else 1e-5
    for given in (data(*parts), data(*parts, size=3)):
        assert model.evaluate(given, verbose=0) == pytest.approx(expected, abs=error)
    several = inputs if isinstance(inputs, tuple) else (inputs,)
    one_by_one = (
        (x[: len(x) - 1] if len(x) > 2 else x[0], x[-1]) for x in batches(*several, labels)
    )
    assert model.evaluate(one_by_one, verbose=0) == pytest.approx(expected, abs=error)
    found = model.predict(data(parts[0], size=3), verbose=0)
    expected = model.predict(inputs, verbose=0)
    floats = tf.nest.map_structure(lambda one: one.dtype.kind == "f", expected)
    for is_float, *pair in zip(*map(tf.nest.flatten, (floats, found, expected)), strict=True):
        (np.testing.assert_allclose if is_float else np.testing.assert_array_equal)(
            *pair, **({"atol": 1e-5} if is_float else {})
        )


@pytest.mark.parametrize(
    "x, y",
    [
        (np.array(TEXTS), np.array(NUMBERS)),
        (np.array(TEXTS)[:, None], np.array(NUMBERS, bool)[:, None]),
        (Series(TEXTS), Series(LABELS)),
        (Frame(text=TEXTS, label=LABELS, id=range(16)), None),
        (Frame(body=TEXTS), Frame(folder=LABELS)),
        ({"text": TEXTS}, np.eye(2)[NUMBERS]),
        (tf.constant(TEXTS), tf.constant(NUMBERS, tf.float32)),
        (data(TEXTS, LABELS), None),
        (data(TEXTS, NUMBERS, size=5), None),
        (data(np.array(TEXTS)[:, None], np.eye(2)[NUMBERS], size=5), None),
        (Batches(), None),
    ],
    ids=lambda given: type(given).__name__,
)
def test_texts_and_labels_have_many_forms(x, y, model, eagerly):
    expected = model.evaluate(TEXTS, LABELS, verbose=0)
    assert model.evaluate(x, y, verbose=0) == pytest.approx(expected, abs=1e-6)
    if isinstance(x, tf.data.Dataset):  # which may be in batches of another size
        model.fit(TEXTS, LABELS, batch_size=16, validation_data=x, verbose=0)
    if y is not None:
        np.testing.assert_allclose(
            model.predict(x, verbose=0), model.predict(TEXTS, verbose=0), atol=1e-6
        )


def test_weights_multiply_the_losses_as_numpy_does(model):
    probabilities = model.predict(TEXTS, verbose=0)
    losses = -np.log(probabilities[np.arange(16), NUMBERS])
    plain, weighted = (
        model.evaluate(TEXTS, LABELS, sample_weight=weights, return_dict=True, verbose=0)
        for weights in (None, WEIGHTS)
    )
    assert plain["loss"] == pytest.approx(losses.mean(), rel=1e-5)
    assert weighted["loss"] == pytest.approx(np.mean(losses * WEIGHTS), rel=1e-5)
    assert weighted["accuracy"] == plain["accuracy"]
    given = data(TEXTS, LABELS, WEIGHTS.astype("f"), size=16)
    assert model.evaluate(given, verbose=0)[0] == pytest.approx(weighted["loss"], rel=1e-6)
    frozen = preset(model.tokenizer, labels=["no", "yes"], head_dropout=0.0)
    frozen.set_weights(model.get_weights())
    frozen.compile(keras.optimizers.SGD(0.0))
    history = frozen.fit(
        TEXTS, LABELS, batch_size=16, class_weight={"no": 1.0, 1: 3.0}, verbose=0
    ).history
    expected = np.mean(losses * np.array([1.0, 3.0])[NUMBERS])
    assert history["loss"][0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_losses_and_metrics_of_keras_are_those_of_keras(model, tmp_path):
    probabilities = model.predict(TEXTS, verbose=0)
    model.compile(
        "adam",
        loss="mse",
        metrics=["accuracy", keras.metrics.AUC(name="auc"), "categorical_crossentropy"],
        weighted_metrics=[keras.metrics.CategoricalAccuracy(name="weighted"), "acc"],
    )
    one_hot = np.eye(2)[NUMBERS]
    model.save(tmp_path / "model.keras")
    for each in (model, keras.models.load_model(tmp_path / "model.keras")):
        found = each.evaluate(TEXTS, one_hot, sample_weight=WEIGHTS, return_dict=True, verbose=0)
        squares = np.square(probabilities - one_hot).mean(axis=1)
        is_right = probabilities.argmax(1) == NUMBERS
        auc = keras.metrics.AUC()
        auc.update_state(one_hot, probabilities)
        assert found == pytest.approx(
            {
                "loss": np.mean(squares * WEIGHTS),
                "accuracy": is_right.mean(),
                "auc": float(auc.result()),
                "categorical_crossentropy": -np.log(probabilities[np.arange(16), NUMBERS]).mean(),
                "weighted": np.average(is_right, weights=WEIGHTS),
                "acc": np.average(is_right, weights=WEIGHTS),
            },
            rel=1e-4,
        )
    assert "auc" in model.fit(TEXTS, one_hot, verbose=0).history
    mean = keras.losses.sparse_categorical_crossentropy
    for loss in (mean, lambda *compared: tf.reduce_mean(mean(*compared))):
        model.compile("adam", loss, metrics=["sparse_categorical_accuracy"])
        found = model.evaluate(TEXTS, NUMBERS, return_dict=True, verbose=0)
        answers = model.predict(TEXTS, verbose=0)[np.arange(16), NUMBERS]
        assert found["loss"] == pytest.approx(-np.log(answers).mean(), rel=1e-4)
        assert found.keys() == {"loss", "sparse_categorical_accuracy"}


def test_labels_of_a_table_are_read_by_name_and_numbers_in_one_way(tiny_tokenizer):
    several = preset(tiny_tokenizer, "AlbertForMultiLabel", labels=["sad", "funny"])
    frame = Frame(funny=[1] * 16, sad=[0] * 16)
    examples = several.examples(TEXTS, frame)
    np.testing.assert_array_equal(several.targets(examples.labels, {}), [[0, 1]] * 16)
    stars = preset(tiny_tokenizer, labels=["1", "2", "3"])
    assert stars.targets([1, 3.0, "2"], {}).tolist() == [0, 2, 1]
    for call in (
        lambda: stars.targets([0, 1, 2], {}),
        lambda: stars.class_weights({0: 2.0}),
    ):
        with pytest.raises(InputError, match=r"unknown label, `0`. It must be one of 1, 2, 3\.$"):
            call()


@pytest.mark.slow
def test_a_subclass_may_have_a_loss_of_its_own(model, tiny_tokenizer):
    class Small(AlbertForClassification):
        def compute_loss(self, *args, **kwargs):
            return super().compute_loss(*args, **kwargs) + 100

        def compute_metrics(self, *args, **kwargs):
            return {"own": 1.0} | super().compute_metrics(*args, **kwargs)

        def train_step(self, data):  # as in the guide of Keras
            x, y = data
            with tf.GradientTape() as tape:
                predictions = self(x, training=True)
                loss = self.compute_loss(x, y, predictions)
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    small = Small(SHAPE, preprocessor=model.preprocessor, labels=["no", "yes"])
    small.set_weights(model.get_weights())
    expected = model.evaluate(TEXTS, LABELS, verbose=0)[0] + 100
    found = small.evaluate(TEXTS, LABELS, return_dict=True, verbose=0)
    assert found["own"] == 1.0
    # Keras 2.15 shows the loss that it computed itself.
    assert found["loss"] == pytest.approx(expected if IS_KERAS_3 else expected - 100, abs=1e-4)
    assert small.fit(TEXTS, LABELS, verbose=0).history["loss"][0] > 100


@pytest.mark.slow
def test_optimizers_and_their_rates_are_those_that_compile_is_given(model):
    adam = keras.optimizers.Adam
    for optimizer in ("adam", given := adam(1e-3)):
        model.compile(optimizer)
        assert isinstance(model.optimizer, adam) and model.optimizer.global_clipnorm is None
    assert model.optimizer is given
    model.compile("lamb")
    assert model.optimizer.global_clipnorm == 1.0
    schedule = WarmupPolynomialDecay(1e-3, 10)
    model.compile("adamw", learning_rate=schedule)
    assert model.optimizer.schedule is schedule
    model.compile("adamw", learning_rate=1e-4)
    rates = []
    show = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: rates.append(
            float(model.optimizer.schedule(int(model.optimizer.iterations) - 1))
        )
    )
    for _ in range(2):  # each training has a warm-up and a decay of its own
        model.fit(TEXTS, LABELS, epochs=5, batch_size=4, verbose=0, callbacks=[show])
    assert rates[0] == rates[20] == 0 and rates[19] == pytest.approx(rates[39], rel=0.2)
    assert max(rates[:20]) == pytest.approx(9e-5) and max(rates[20:]) == pytest.approx(1e-4)


def test_a_class_is_loaded_with_few_modules():
    program = """
import sys, albert_keras
albert_keras.AlbertForClassification
ours = [name for name in sys.modules if name.split(".")[0] in ("albert_keras", "data_pipeline")]
assert len(ours) <= 66, sorted(ours)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda model: model.fit(TEXTS, LABELS[:3]), "16 of text, 3 of labels"),
        (lambda model: model.fit(TEXTS), "must be a label for each"),
        (lambda model: model.fit(["a", "b"], ["yes", "maybe"]), "Label 2 of .*label, `maybe`"),
        (lambda model: model.fit("a text", "yes"), "must be a list of texts"),
        (lambda model: model.fit([["a", "b"], ["c", "d"]], [0, 1]), "not a list of rows"),
        (lambda model: model.fit([1.5, None], [0, 1]), "Input 1 of 2: `text` must be a text"),
        (lambda model: model.fit(Frame(a=TEXTS, b=TEXTS), LABELS), "no column `text`.*a, b"),
        (lambda model: model.fit({"texts": TEXTS}, LABELS), "Did you mean `text`"),
        (lambda model: model.fit(TEXTS, Frame(a=NUMBERS, b=NUMBERS)), "columns of labels .*: a, b"),
        (lambda model: model.fit(TEXTS, LABELS, class_weight={"maybe": 2.0}), "`maybe`"),
        (lambda model: model.fit(TEXTS, LABELS, class_weight=[1, 2]), "`class_weight` must be"),
        (lambda model: model.predict({"a", "b"}), "`text` must be a list"),
        (lambda model: preset(model.tokenizer, labels=2, head_dropout=2.0), "`head_dropout` must"),
        (lambda model: preset(model.tokenizer, labels=2, sequence_length=65), "must not exceed"),
        (lambda model: preset(model.tokenizer, labels=2, sequence_length=8.5), "an integer"),
        (lambda model: preset(model.tokenizer, labels=3, threshold=0.5), "`threshold` must be"),
        (lambda model: preset(model.tokenizer, labels=2, thresholds={"z": 0.5}), "Received: z"),
        (
            lambda model: preset(model.tokenizer, "AlbertForMultipleChoice").answer(
                (["a"], ["b"], [["c"]])
            ),
            "`options` must be a list of at least 2",
        ),
        (
            lambda model: model.fit(TEXTS, LABELS, sample_weight=WEIGHTS, class_weight={0: 2.0}),
            "`class_weight` .* beside weights",
        ),
        (
            lambda model: model.fit(data(TEXTS, LABELS, WEIGHTS), class_weight={0: 2.0}),
            "`class_weight` .* beside weights",
        ),
        (lambda model: model.fit(TEXTS, LABELS, batch_size=0), "`batch_size` must be at least 1"),
        (lambda model: model.fit(TEXTS, np.full((16, 2), 0.6)), "shares .* whose sum is 1"),
        (lambda model: model.fit(data(TEXTS, ["maybe"] * 16), verbose=0), "`maybe`"),
        (lambda model: model.fit(data(TEXTS, LABELS), LABELS), "`y` must not be given"),
        (lambda model: model.fit(data(NUMBERS, LABELS)), "must yield texts"),
        (lambda model: model.fit(TEXTS, LABELS, validation_split=0.999), "both sides"),
        (lambda model: model.fit(TEXTS, LABELS, sample_weight=[-1.0] * 16), "`sample_weight`"),
        (lambda model: model.evaluate(TEXTS, LABELS, nonsense=1), "nonsense"),
        (lambda model: model.predict(TEXTS, nonsense=1), "nonsense"),
        (lambda model: model.fit(data(TEXTS, LABELS, size=4), batch_size=8), "`batch_size`"),
        (lambda model: model.compile(keras.optimizers.Adam(), learning_rate=1), "`learning_rate`"),
        (
            lambda model: model.fit(
                TEXTS, LABELS, callbacks=[keras.callbacks.LearningRateScheduler(lambda _: 1.0)]
            ),
            "has no effect",
        ),
    ],
)
def test_what_is_not_understood_is_refused(call, message, model):
    with pytest.raises((InputError, ValueError, TypeError), match=message):
        call(model)


def test_a_model_of_single_texts_stays_one(model, eagerly):
    pairs = TEXTS, TEXTS
    assert model.predict(pairs, verbose=0).shape == (16, 2)  # it may become either
    model.fit(TEXTS, LABELS, verbose=0)
    for call in (model.predict, model.answer, model):
        with pytest.raises(InputError, match="made for single texts.*pairs"):
            call(pairs)
    with pytest.raises(InputError, match="made for single texts.*pairs"):
        model.fit(pairs, LABELS)


@pytest.mark.parametrize(
    "stream",
    [
        lambda: data((TEXTS, TEXTS), LABELS, size=8),
        lambda: data((TEXTS, TEXTS), LABELS),
        lambda: data((TEXTS, TEXTS), LABELS, size=8).filter(lambda *_: True),
        lambda: iter([((TEXTS, TEXTS), LABELS)]),
        lambda: Pairs(),
    ],
    ids=["batches", "examples", "of unknown length", "generator", "Sequence"],
)
def test_a_model_of_pairs_that_arrive_one_after_the_other_stays_one(stream, model):
    model.compile("sgd")
    model.fit(stream(), steps_per_epoch=1, verbose=0)
    assert model.pairs
    assert len(model.answer((TEXTS, TEXTS))) == len(TEXTS)
    for call in (model.predict, model.answer):
        with pytest.raises(InputError, match="made for pairs of texts.*single"):
            call(TEXTS)
    assert model.signature_inputs == {"first": "text", "second": "pair"}


def test_an_ended_schedule_is_refused(model):
    model.compile(albert_keras.AdamW(WarmupPolynomialDecay(1e-3, 2)))
    model.fit(TEXTS, LABELS, batch_size=8, verbose=0)
    with pytest.raises(ValueError, match="schedule of the learning rate has ended"):
        model.fit(TEXTS, LABELS, batch_size=8, verbose=0)
