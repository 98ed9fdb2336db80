"""A SavedModel with an endless loop is stopped, and other models are left alone."""

import threading
import time

import pytest
import tensorflow as tf

from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.loading import time_limit
from data_pipeline.errors import InputError


@tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
def endless(text):
    number = tf.while_loop(lambda i: i >= 0, lambda i: [(i + 1) % 1000], [tf.constant(0)])[0]
    return {"y": tf.cast(number, tf.float32) + tf.zeros(tf.shape(text))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endless") / "model" / "1"
    tf.saved_model.save(tf.Module(), str(folder), signatures=endless)
    return folder


def test_an_answer_that_never_comes_is_an_error(folder):
    predictor = Predictor(folder, timeout=1)
    begin = time.monotonic()
    for _ in range(2):
        with pytest.raises(InputError, match="must load and answer within 1 s. It did not"):
            predictor.ask("serving_default", text=["x"])
    assert time.monotonic() - begin < 30


def test_what_ends_in_time_is_not_touched(tmp_path):
    with time_limit(60, tmp_path):
        assert tf.function(lambda x: x + 1)(tf.constant(1)) == 2
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_other_cancellations_are_passed_on(tmp_path):
    with pytest.raises(tf.errors.CancelledError), time_limit(60, tmp_path):
        raise tf.errors.CancelledError(None, None, "another one")
