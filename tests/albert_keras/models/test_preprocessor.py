"""Texts become the inputs of the encoder, wherever a Keras layer may stand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras import (
    AlbertConfig,
    AlbertEncoder,
    AlbertForClassification,
    AlbertPreprocessor,
)
from albert_keras.keras_versions import name_of
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.keras_line import IS_KERAS_3

TEXTS = ["The old ferry left the harbour.", "", "Seven geese crossed the frozen lake."]


class Column:
    """What a column of pandas has in common with an array."""

    def to_numpy(self):
        return np.array(TEXTS, object)

    def __array__(self, dtype=None):
        return self.to_numpy()


@pytest.fixture(scope="module")
def preprocessor(tiny_tokenizer):
    return AlbertPreprocessor(tiny_tokenizer, sequence_length=16)


@pytest.fixture(scope="module")
def encoder(tiny_tokenizer):
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1}
    shape = AlbertConfig(vocab_size=tiny_tokenizer.vocab_size, intermediate_size=8, **sizes)
    return AlbertEncoder(shape, seed=1)


def test_texts_are_packed_as_the_tokenizer_says(preprocessor, tiny_tokenizer):
    inputs = preprocessor(TEXTS)
    for text, ids, mask in zip(TEXTS, inputs["input_ids"], inputs["input_mask"], strict=True):
        tokens = tiny_tokenizer(text)[:14]
        row = [tiny_tokenizer.cls_id, *tokens, tiny_tokenizer.sep_id]
        assert ids.numpy().tolist() == row + [tiny_tokenizer.pad_id] * (16 - len(row))
        assert mask.numpy().tolist() == [1] * len(row) + [0] * (16 - len(row))
    text = tiny_tokenizer.decode(tiny_tokenizer(TEXTS[0])[:14])
    assert preprocessor.detokenize(inputs["input_ids"])[:2] == [text, ""]
    assert preprocessor.detokenize(inputs["input_ids"][0]) == text


def test_it_works_eagerly_in_a_dataset_and_on_columns(preprocessor):
    expected = preprocessor(TEXTS)
    scalar = tf.data.Dataset.from_tensor_slices(TEXTS).map(preprocessor).batch(3)
    whole = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3, drop_remainder=True)
    found = [*scalar, *whole.map(preprocessor), preprocessor(tf.constant(TEXTS))]
    found += [preprocessor(np.array(TEXTS)), preprocessor(Column())]
    for inputs in found:
        for name, values in expected.items():
            np.testing.assert_array_equal(inputs[name], values)
    assert whole.map(preprocessor).element_spec["input_ids"].shape == (3, 16)


def test_a_pair_has_two_segments(preprocessor):
    tensors = [tf.constant(TEXTS), tf.constant(TEXTS[::-1])]
    for pair in ((TEXTS, TEXTS[::-1]), tensors, (tensors[0], TEXTS[::-1])):
        inputs = preprocessor(pair)
        assert inputs["input_mask"].numpy().sum(axis=1).max() == 16
        assert inputs["segment_ids"].numpy().max() == 1
    assert preprocessor(("one", "two"))["input_ids"].shape == (16,)
    by_name = preprocessor({"text": TEXTS, "pair": TEXTS[::-1]})
    np.testing.assert_array_equal(by_name["input_ids"], inputs["input_ids"])


def test_a_bucket_saves_the_padding(tiny_tokenizer):
    layer = AlbertPreprocessor(tiny_tokenizer, sequence_length=64, padding="bucket")
    assert layer(["one"])["input_ids"].shape == (1, 16)


def test_a_model_over_strings_is_saved_with_its_vocabulary(preprocessor, encoder, tmp_path):
    text = keras.Input((), dtype=tf.string)
    pooled = encoder(preprocessor(text))["pooled_output"]
    model = keras.Model(text, keras.layers.Dense(2)(pooled))
    expected = model(tf.constant(TEXTS))
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(tf.constant(TEXTS)), expected)


def test_presets_have_weights_and_vocabulary(tiny_run, tiny_tokenizer):
    encoder, random = (AlbertEncoder.from_preset(tiny_run, load_weights=w) for w in (True, False))
    names = [*map(name_of, encoder.weights)]
    assert names == [*map(name_of, random.weights)] and "bert/pooler/dense/kernel" in names
    table = tf.train.load_variable(
        str(tiny_run / "checkpoints" / "step-00000012" / "model.ckpt"),
        "bert/embeddings/word_embeddings",
    )
    np.testing.assert_array_equal(encoder.embeddings.word_embeddings, table)
    assert (random.embeddings.word_embeddings.numpy() != table).any()
    # What is not loaded has the initial values of its seed.
    model = AlbertForClassification.from_preset(tiny_run, labels=2, seed=3)
    new = AlbertForClassification(model.config, labels=2, seed=3)
    assert new.head.output_weights.numpy().all()
    np.testing.assert_array_equal(model.head.output_weights, new.head.output_weights)
    found = AlbertPreprocessor.from_preset(tiny_run, sequence_length=8)
    assert (found.tokenizer.digest, found.sequence_length) == (tiny_tokenizer.digest, 8)


def test_ids_and_wrong_pairs_are_refused(preprocessor):
    with pytest.raises(TypeError, match="Ids need no preprocessor"):
        preprocessor(tf.constant([[1, 2]]))
    without_input = keras.Sequential([preprocessor])
    wanted = "`keras.Input" if IS_KERAS_3 else "use the functional API"  # which takes no dict
    with pytest.raises((TypeError, ValueError), match=wanted):
        without_input(tf.constant(TEXTS))
    with pytest.raises(ValueError, match="same number of texts"):
        preprocessor((["a"], ["a", "b"]))
    for rows in ([["a", "b"], ["c", "d"]], [("a", "b"), ("c", "d"), ("e", "f")]):
        with pytest.raises(ValueError, match="list of lists might as well be one row"):
            preprocessor(rows)
    with pytest.raises(ValueError, match="at most 2 columns"):
        preprocessor((["a"], ["b"], ["c"]))


def test_it_is_printed_with_what_it_does(preprocessor):
    assert repr(preprocessor).startswith("<AlbertPreprocessor sequence_length=16, padding=")


def test_a_tokenizer_stays_usable_after_its_first_use_in_a_graph(tiny_tokenizer):
    tokenizer = Tokenizer(tiny_tokenizer.model_bytes, tiny_tokenizer.config)
    for text in tf.data.Dataset.from_tensor_slices(TEXTS[:1]).batch(1).map(tokenizer):
        assert text.to_list() == tokenizer(tf.constant(TEXTS[:1])).to_list()


@pytest.mark.parametrize("name", ["tokenizer", "sequence_length", "padding"])
def test_what_it_is_built_from_cannot_be_changed(name, preprocessor):
    before = getattr(preprocessor, name)
    with pytest.raises(AttributeError, match=f"`{name}` .* cannot be changed. Make another one"):
        setattr(preprocessor, name, 8)
    assert getattr(preprocessor, name) is before
