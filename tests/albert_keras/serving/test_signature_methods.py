"""Signatures get the method of their name."""

import pytest
import tensorflow as tf

from albert_keras.serving.saved_model.server_ops import read_saved_model
from albert_keras.serving.saved_model.signatures import (
    read_signatures,
    set_method_names,
)

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


def test_signatures_are_read_with_shapes(model):
    first, second, third = read_signatures(model[0])
    assert (first.name, first.method) == ("classify", "classify")
    assert first.outputs["scores"] == tf.TensorSpec([None, 2], tf.float32, "scores")
    assert (second.name, second.method) == ("predict_tokens", "predict")
    assert second.inputs == {"ids": tf.TensorSpec([None, None], tf.int32, "ids")}
    assert third.method == "regress"
