"""Text models take what models of Keras take: arguments by position, generators, files."""

import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.text_classifiers import AlbertForClassification
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.test_text_model import (
    FIT,
    KINDS,
    LABELS,
    NUMBERS,
    TEXTS,
    WEIGHTS,
    WORDS,
    preset,
)
from tests.keras_line import IS_KERAS_3
from tests.parameters import slow


@pytest.fixture
def model(tiny_tokenizer):
    """Returns a model of two classes that does not change."""
    model = preset(tiny_tokenizer, labels=["no", "yes"], head_dropout=0.0)
    model.compile(keras.optimizers.SGD(0.0), metrics=["accuracy"])
    return model


class Columns(keras.utils.Sequence):
    """Batches of texts, without labels, by their numbers."""

    def __init__(self, texts):
        super().__init__()
        self._texts = texts

    def __len__(self):
        return len(self._texts) // 2

    def __getitem__(self, number):
        return self._texts[2 * number : 2 * number + 2]


def test_what_xla_compiles_is_what_compile_was_told(model):
    given = {True: True, "step": True, False: False, "none": False, "kernels": False, None: False}
    for value, is_compiled in given.items():
        model.compile("sgd", jit_compile=value)
        assert model.jit_compile is is_compiled, value
    for value, hint in (
        ("Step", "`step`"),
        ("xla", "auto, kernels, none, step"),
        (3, "Received: 3"),
    ):
        with pytest.raises(ValueError, match=f"`jit_compile` must be .*{hint}"):
            model.compile("sgd", jit_compile=value)


@pytest.mark.slow
def test_arguments_by_position_are_in_the_order_of_keras(model):
    history = model.fit(TEXTS, LABELS, 5, 2, 0, [], 0.25, None, False).history
    losses = -np.log(model.predict(TEXTS, 5, 0)[np.arange(16), NUMBERS])
    np.testing.assert_allclose(history["loss"], [losses[:12].mean()] * 2, rtol=1e-5)
    np.testing.assert_allclose(history["val_loss"], [losses[12:].mean()] * 2, rtol=1e-5)
    weighted = np.mean(losses * WEIGHTS)
    assert model.evaluate(TEXTS, LABELS, 5, 0, WEIGHTS)[0] == pytest.approx(weighted, rel=1e-5)
    assert len(model.predict(TEXTS, 5, 0, 2)) == 10
    assert float(model.train_on_batch(TEXTS, NUMBERS, WEIGHTS)[0]) == pytest.approx(weighted)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "name, kind",
    [
        ("AlbertForClassification", Columns),
        ("AlbertForTokenClassification", lambda texts: iter([*Columns(texts)])),
    ],
)
def test_lists_that_a_generator_yields_are_texts(name, kind, tiny_tokenizer, eagerly):
    model = preset(tiny_tokenizer, name, labels=["no", "yes"])
    texts = WORDS if name == "AlbertForTokenClassification" else TEXTS
    found = model.predict(kind(texts), verbose=0)
    np.testing.assert_allclose(found, model.predict(texts, verbose=0), atol=1e-6)


class OneBatch(keras.utils.Sequence):
    """A batch, again and again."""

    def __init__(self, *batch):
        super().__init__()
        self._batch = batch

    def __len__(self):
        return 2

    def __getitem__(self, number):
        return self._batch


def data_of(x, y):
    tensors = map(tf.ragged.constant, (x, y)) if isinstance(x[0], list) else (x, y)
    return tf.data.Dataset.from_tensor_slices(tuple(tensors))


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("name", ["AlbertForTokenClassification", "AlbertForMultiLabel"])
@pytest.mark.parametrize(
    "train",
    [
        lambda model, x, y: model.fit(data_of(x, y).batch(8), verbose=0),
        lambda model, x, y: model.fit(data_of(x, y), verbose=0),
        lambda model, x, y: model.fit(iter([(x, y)] * 2), steps_per_epoch=1, verbose=0),
        lambda model, x, y: model.fit(OneBatch(x, y), verbose=0),
        lambda model, x, y: model.train_on_batch(x, y),
    ],
    ids=["batches", "examples", "generator", "Sequence", "train_on_batch"],
)
def test_the_output_bias_begins_alike_in_memory_and_in_streams(name, train, tiny_tokenizer):
    arguments, x, y = KINDS[name]
    if name == "AlbertForMultiLabel":
        y = [[1, 0], [1, 1], [1, 0], [0, 0]] * 2
    memory, stream = (preset(tiny_tokenizer, name, **arguments) for _ in range(2))
    for model in (memory, stream):
        model.compile(keras.optimizers.SGD(0.0))
    memory.fit(x, y, verbose=0)
    train(stream, x, y)
    assert memory.head.output_bias.numpy().any()
    np.testing.assert_allclose(stream.head.output_bias, memory.head.output_bias, atol=1e-6)


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2.15 has no PyDataset")
def test_a_py_dataset_without_end_is_asked_as_keras_does(model, eagerly):
    calls = []

    class Endless(keras.utils.PyDataset):
        num_batches = None

        def __getitem__(self, number):
            return TEXTS[:4], np.array(NUMBERS[:4])

        def on_epoch_begin(self):
            calls.append("begin")

        def on_epoch_end(self):
            calls.append("end")

    fit = {"steps_per_epoch": 2, "epochs": 2, "shuffle": False, "verbose": 0}
    expected = model.evaluate(TEXTS[:4], LABELS[:4], verbose=0)[0]
    losses = model.fit(Endless(workers=2), **fit).history["loss"]
    np.testing.assert_allclose(losses, [expected] * 2, rtol=1e-5)
    assert calls[-4:] == ["begin", "end"] * 2  # Keras ends one more to see the shapes


@pytest.mark.parametrize("labels", [LABELS, NUMBERS, np.eye(2)[NUMBERS]])
def test_shuffled_texts_have_the_order_of_shuffled_features(labels, model, eagerly):
    texts, rows = (
        tf.data.Dataset.from_tensor_slices((TEXTS, labels)).shuffle(16, seed=1).batch(3)
        for _ in range(2)
    )
    features = rows.map(lambda texts, labels: (model.preprocessor(texts), labels))
    found = model.predict(texts, verbose=0)
    np.testing.assert_allclose(found, model.predict(features, verbose=0), atol=1e-6)


@pytest.mark.parametrize("name", ["AlbertForMultipleChoice", "AlbertForSimilarity"])
def test_texts_that_are_missing_are_named(name, tiny_tokenizer):
    model = preset(tiny_tokenizer, name)
    missing = model.preprocessor.fields[-1]
    with pytest.raises(ValueError, match=f"Received no `{missing}`"):
        model.predict({field: TEXTS for field in model.preprocessor.fields[:-1]})


@keras.saving.register_keras_serializable("tests")
class WithLayer(AlbertForClassification):
    """A subclass with a layer of Keras, which has no weights before the first call."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = keras.layers.Dense(2, "softmax")

    def call(self, inputs, training=None, **kwargs):
        return self.extra(super().call(inputs, training=training, **kwargs))


@pytest.mark.parametrize("has_texts", [True, *slow(False)])
def test_layers_of_a_subclass_come_back_with_moments(has_texts, model, tmp_path):
    given = {"preprocessor": model.preprocessor if has_texts else None, "labels": ["no", "yes"]}
    own = WithLayer(SHAPE, head_dropout=0.0, **given)
    own.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    texts = TEXTS if has_texts else model.preprocessor(TEXTS)
    own.fit(texts, np.array(NUMBERS), shuffle=False, **FIT)
    own.save(tmp_path / "model.keras")
    own.save_weights(tmp_path / "model.weights.h5")
    again = keras.models.load_model(tmp_path / "model.keras")
    other = WithLayer(SHAPE, head_dropout=0.0, **given)
    other.load_weights(tmp_path / "model.weights.h5")
    for each in (again, other):
        for ours, theirs in zip(own.weights, each.weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    losses = [
        each.fit(texts, np.array(NUMBERS), shuffle=False, **FIT).history["loss"]
        for each in (own, again)
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)


def test_weights_of_another_shape_are_named_and_the_others_loaded(model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    other = AlbertForClassification(SHAPE.replace(vocab_size=99), labels=["no", "yes"], seed=5)
    with pytest.raises(ValueError, match="other shapes: bert.embeddings.word_embeddings"):
        other.load_weights(tmp_path / "model.weights.h5")
    for ours, theirs in zip(model.weights, other.weights, strict=True):
        if ours.shape == theirs.shape:
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("labels", [np.array([3.0, 1.0, 2.0, 9.0], "float32"), None])
def test_pairs_of_weight_zero_are_compared_with_none(labels, tiny_tokenizer):
    model = preset(tiny_tokenizer, "AlbertForSimilarity")
    model.compile("sgd")
    vectors = np.random.default_rng(0).normal(size=(4, 2, 8)).astype("float32")
    vectors = tf.math.l2_normalize(vectors, axis=-1)
    labels = model.no_targets(4) if labels is None else labels

    def loss_of(count, sample_weight):
        some = vectors[:count]
        outputs = {"vectors": some, "cosine": tf.reduce_sum(some[:, 0] * some[:, 1], axis=-1)}
        predicted = model.predictions(outputs)
        return float(
            model.compute_loss(None, tf.constant(labels[:count]), predicted, sample_weight)
        )

    alone = loss_of(3, None)
    assert alone > 0.1
    assert loss_of(4, tf.constant([1.0, 1, 1, 0])) * 4 / 3 == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("labels", [[3.0, 1.0, 2.0], None])
def test_pairs_are_learned_from_eagerly(labels, tiny_tokenizer):
    losses = []
    for run_eagerly in (False, True):
        model = preset(tiny_tokenizer, "AlbertForSimilarity", seed=1)
        model.compile(keras.optimizers.SGD(0.0), run_eagerly=run_eagerly)
        weights = np.array([1.0, 1.0, 0.0])
        loss = model.train_on_batch((TEXTS[:3], TEXTS[8:11]), labels, weights)
        losses.append(float(np.ravel(loss)[0]))
    assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[0] > 0


@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize("name", ["AlbertForClassification", "AlbertForMultiLabel"])
def test_saturated_outputs_have_loss_and_gradient(name, run_eagerly, tiny_tokenizer):
    model = preset(tiny_tokenizer, name, labels=["no", "yes"], head_dropout=0.0)
    model.compile(keras.optimizers.SGD(1.0), run_eagerly=run_eagerly)
    model.head.output_bias.assign([40.0, -40.0])
    labels = ["yes"] if name == "AlbertForClassification" else [["yes"]]
    loss = model.evaluate(TEXTS[:1], labels, verbose=0)[0]
    assert float(loss) == pytest.approx(
        80.0 if name == "AlbertForClassification" else 40.0, rel=0.1
    )
    model.train_on_batch(TEXTS[:1], labels)
    assert float(model.head.output_bias[1]) > -39.9


@pytest.mark.parametrize("at", [4, 5])
def test_a_restored_training_has_the_rates_of_one_without_an_interruption(
    at, tiny_tokenizer, tmp_path, eagerly
):
    def trained(*callbacks, again=False):
        model = preset(tiny_tokenizer, labels=["no", "yes"], head_dropout=0.0, seed=1)
        model.compile("adamw", learning_rate=0.01)
        model.fit(TEXTS[:8], LABELS[:8], 4, verbose=0, shuffle=False)  # a training before
        given = {"epochs": 4, "verbose": 0, "shuffle": False, "callbacks": list(callbacks)}
        if again:
            with pytest.raises(KeyboardInterrupt):
                model.fit(TEXTS[:8], LABELS[:8], 4, **given)
        given["callbacks"] = given["callbacks"][:1]
        model.fit(TEXTS[:8], LABELS[:8], 4, **given)
        return model

    counts = []

    def interrupt(batch, logs=None):
        counts.append(batch)
        if len(counts) == at:
            raise KeyboardInterrupt

    expected = trained()
    stop = keras.callbacks.LambdaCallback(on_train_batch_end=interrupt)
    found = trained(keras.callbacks.BackupAndRestore(str(tmp_path / "backup")), stop, again=True)
    assert int(found.optimizer.iterations) == 10
    assert found.optimizer.schedule(10) == 0
    for ours, others in zip(found.weights, expected.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), others.numpy(), rtol=0, atol=1e-5)


def test_a_restored_training_needs_its_length(model, tmp_path):
    model.compile("adamw", learning_rate=0.01)
    batches = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(4)
    unknown = batches.filter(lambda *_: True)
    backup = {"callbacks": [keras.callbacks.BackupAndRestore(str(tmp_path))], "verbose": 0}
    for stream in (unknown, iter([(TEXTS, LABELS)])):
        with pytest.raises(ValueError, match="`BackupAndRestore` .* Give `steps_per_epoch`"):
            model.fit(stream, **backup)
    model.fit(unknown, steps_per_epoch=4, **backup)
    assert model.optimizer.schedule(4) == 0


def test_a_file_that_is_not_finished_leaves_nothing_behind(model, tmp_path):
    before = model.encoder.get_weights()

    def stop(store):
        del model.encoder.save_own_variables  # the method again
        model.encoder.save(tmp_path / "meanwhile.keras")  # as another thread might
        raise KeyboardInterrupt

    model.encoder.save_own_variables = stop
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "model.keras")
    model.encoder.save_weights(tmp_path / "encoder.weights.h5")
    larger = AlbertForClassification(SHAPE, labels=["no", "yes", "perhaps"], seed=5)
    larger.save_weights(tmp_path / "larger.weights.h5")
    with pytest.raises(ValueError, match="other shapes"):
        model.load_weights(tmp_path / "larger.weights.h5")
    model.encoder.load_weights(tmp_path / "encoder.weights.h5")
    model.encoder.save(tmp_path / "encoder.keras")
    found = [
        keras.models.load_model(tmp_path / f"{name}.keras") for name in ("meanwhile", "encoder")
    ]
    for encoder in (model.encoder, *found):
        for ours, theirs in zip(before, encoder.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_model_is_saved_in_one_thread_and_loaded_in_another(model, tmp_path):
    encoder, before = model.encoder, model.encoder.get_weights()
    other = AlbertEncoder(SHAPE, seed=9, pooler=encoder.pooler is not None)
    other.save_weights(tmp_path / "other.weights.h5")

    def load_meanwhile(store):
        del encoder.save_own_variables  # the method again
        path = str(tmp_path / "other.weights.h5")
        thread = threading.Thread(target=encoder.load_weights, args=[path])
        thread.start()
        thread.join()
        encoder.save_own_variables(store)

    encoder.save_own_variables = load_meanwhile
    model.save(tmp_path / "model.keras")
    saved = keras.models.load_model(tmp_path / "model.keras").encoder.get_weights()
    for found, expected in ((encoder.get_weights(), other.get_weights()), (saved, before)):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@keras.saving.register_keras_serializable("tests")
class WithEncoder(AlbertForClassification):
    """A subclass with a second encoder."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.second = AlbertEncoder(SHAPE, seed=9)

    def call(self, inputs, training=None, **kwargs):
        self.second(inputs, training=training)
        return super().call(inputs, training=training, **kwargs)


def test_two_encoders_of_a_model_are_both_in_its_file(tmp_path):
    model = WithEncoder(SHAPE, labels=["no", "yes"], seed=1)
    model.second.set_weights([weight + 1 for weight in model.second.get_weights()])
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_texts_are_not_compiled_by_xla_where_keras_chooses(model):
    model.compile("sgd", jit_compile=True)  # whose steps read features
    tagger = preset(model.tokenizer, "AlbertForTokenClassification", labels=["O", "B-X"])
    tagger.compile("sgd")
    assert model.jit_compile and not tagger.jit_compile
    for each in (model, tagger):
        assert not each.preprocessor.supports_jit  # which Keras 3 asks where there is a GPU
    text = keras.Input((), dtype=tf.string, name="text")
    ids = model.preprocessor(text)["input_ids"]
    own = keras.Model(text, keras.layers.Embedding(SHAPE.vocab_size, 2)(ids))
    assert own.predict(tf.constant(["a"]), verbose=0).shape == (1, 16, 2)


def test_an_encoder_or_a_preprocessor_of_another_model_is_refused(model):
    other = preset(model.tokenizer, labels=["no", "yes"])
    with pytest.raises(TypeError, match="no argument `encoder`: .*set_weights"):
        AlbertForClassification(SHAPE, labels=["no", "yes"], encoder=other.encoder)
    with pytest.raises(TypeError, match="`preprocessor` .*sequence_length"):
        AlbertForClassification.from_preset("albert-mini-en", preprocessor=model.preprocessor)
    with pytest.raises(AttributeError, match="set_weights"):
        model.encoder = other.encoder
