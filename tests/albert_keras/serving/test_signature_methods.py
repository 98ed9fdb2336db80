"""Signatures get the method of their name, if they are what it asks for."""

import pytest
import tensorflow as tf

from albert_keras.serving.saved_model.server_ops import read_saved_model
from albert_keras.serving.saved_model.signature_methods import (
    Signature,
    check_signature,
    read_signatures,
    set_method_names,
)
from data_pipeline.errors import InputError

EXAMPLES = tf.TensorSpec([None], tf.string, name="inputs")
FEATURES = {
    "text": tf.io.FixedLenFeature([], tf.string, ""),
    "number": tf.io.VarLenFeature(tf.int64),
    "weight": tf.io.RaggedFeature(tf.float32),
}


@tf.function(input_signature=[EXAMPLES])
def classify(inputs):
    texts = tf.io.parse_example(inputs, FEATURES)["text"]
    scores = tf.cast(tf.strings.length(texts), tf.float32)[:, None] * [[1.0, 2.0]]
    classes = tf.broadcast_to(tf.constant([["no", "yes"]]), tf.shape(scores))
    return {"classes": classes, "scores": scores}


@tf.function(input_signature=[EXAMPLES])
def regress(inputs):
    return {"outputs": tf.ones_like(tf.strings.length(inputs), tf.float32)}


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
def predict_tokens(ids):
    return {"sums": tf.reduce_sum(ids, axis=1)}


def save(folder, **signatures):
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    save(folder, classify=classify, regress=regress, predict_tokens=predict_tokens)
    fingerprint = tf.saved_model.experimental.read_fingerprint(str(folder))
    set_method_names(folder)
    return folder, fingerprint


def test_the_file_says_which_method_a_signature_is_for(model):
    definitions = read_saved_model(model[0]).meta_graphs[0].signature_def
    for name, method in [
        ("classify", "tensorflow/serving/classify"),
        ("regress", "tensorflow/serving/regress"),
        ("predict_tokens", "tensorflow/serving/predict"),
    ]:
        assert definitions[name].method_name == method


def test_the_model_still_answers(model):
    loaded = tf.saved_model.load(str(model[0]))
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(b"four")
    answer = loaded.signatures["classify"](inputs=tf.constant([example.SerializeToString(), b""]))
    assert answer["scores"].numpy().tolist() == [[4.0, 8.0], [0.0, 0.0]]


def test_the_fingerprint_is_that_of_the_new_file(model):
    folder, before = model
    after = tf.saved_model.experimental.read_fingerprint(str(folder))
    assert after.signature_def_hash != before.signature_def_hash
    assert after.graph_def_program_hash == before.graph_def_program_hash
    assert {path.name for path in folder.iterdir()} == {
        *("saved_model.pb", "fingerprint.pb", "variables", "assets")
    }


def test_signatures_are_read_with_shapes_and_features(model):
    first, second, third = read_signatures(model[0])
    assert (first.name, first.method) == ("classify", "classify")
    assert first.features == {"text": tf.string, "pair": tf.string}
    assert first.outputs["scores"] == tf.TensorSpec([None, 2], tf.float32, "scores")
    assert (second.name, second.features) == ("predict_tokens", {})
    assert second.inputs == {"ids": tf.TensorSpec([None, None], tf.int32, "ids")}
    assert third.method == "regress"


def test_a_model_without_such_names_is_left_alone(tmp_path):
    save(tmp_path, predict_tokens=predict_tokens)
    before = (tmp_path / "saved_model.pb").stat()
    set_method_names(tmp_path)
    assert (tmp_path / "saved_model.pb").stat() == before


def test_a_model_that_breaks_a_rule_is_left_as_it_was(tmp_path):
    save(tmp_path, regress=classify)
    before = (tmp_path / "saved_model.pb").read_bytes()
    with pytest.raises(InputError, match="Received: `classes`, string .*, `scores`, float32"):
        set_method_names(tmp_path)
    assert (tmp_path / "saved_model.pb").read_bytes() == before


def spec(dtype, *shape):
    return tf.TensorSpec(None if shape == ("any",) else shape, dtype)


INPUT = {"inputs": spec(tf.string, None)}
CLASSES, SCORES = spec(tf.string, None, 3), spec(tf.float32, None, 3)
VALUES = spec(tf.float32, None)


@pytest.mark.parametrize(
    "method, outputs",
    [
        ("classify", {"classes": CLASSES, "scores": SCORES}),
        ("classify", {"scores": spec(tf.float32, None, None)}),
        ("classify", {"classes": CLASSES}),
        ("regress", {"outputs": VALUES}),
        ("regress", {"outputs": spec(tf.float32, None, 1)}),
        ("predict", {"anything": spec(tf.int32, "any")}),
    ],
)
def test_what_follows_the_rules_passes(method, outputs):
    check_signature(Signature("name", method, INPUT, outputs, {}))


@pytest.mark.parametrize(
    "method, inputs, outputs",
    [
        ("classify", {"text": INPUT["inputs"]}, {"scores": SCORES}),
        ("classify", INPUT | {"more": INPUT["inputs"]}, {"scores": SCORES}),
        ("classify", {"inputs": spec(tf.string, 4)}, {"scores": SCORES}),
        ("classify", {"inputs": spec(tf.int32, None)}, {"scores": SCORES}),
        ("classify", INPUT, {}),
        ("classify", INPUT, {"scores": SCORES, "more": SCORES}),
        ("classify", INPUT, {"scores": spec(tf.float32, None)}),
        ("classify", INPUT, {"scores": spec(tf.float32, 4, 3)}),
        ("classify", INPUT, {"scores": spec(tf.float32, "any")}),
        ("classify", INPUT, {"scores": spec(tf.float64, None, 3)}),
        ("classify", INPUT, {"classes": CLASSES, "scores": spec(tf.float32, None, 2)}),
        ("regress", {"inputs": spec(tf.string, None, 1)}, {"outputs": VALUES}),
        ("regress", INPUT, {"scores": VALUES}),
        ("regress", INPUT, {"outputs": VALUES, "more": VALUES}),
        ("regress", INPUT, {"outputs": spec(tf.float32, None, 2)}),
        ("regress", INPUT, {"outputs": spec(tf.int32, None)}),
    ],
)
def test_what_breaks_a_rule_is_refused(method, inputs, outputs):
    with pytest.raises(InputError, match=f"`name` with the method {method} must have"):
        check_signature(Signature("name", method, inputs, outputs, {}))
