"""A SavedModel with an endless loop is stopped, and other models are left alone."""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.local.exported_versions import ExportedVersion
from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.served_models import ServedModel
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.protocol.status import StatusError
from albert_keras.serving.saved_model.time_limit import time_limit
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


def test_a_server_answers_with_the_error(folder):
    model = ServedModel(ExportedVersion("model", 1, folder), Limits(computing_seconds=0.5))
    model.warm_up()
    _, servable = model.servable()
    with pytest.raises(StatusError, match="must load and answer within 1 s. It did not") as caught:
        servable.run("serving_default", {"text": np.array(["a", "b"], object)})
    assert caught.value.code == "DEADLINE_EXCEEDED"


def test_what_ends_in_time_is_not_touched(tmp_path):
    with time_limit(60, tmp_path):
        assert tf.function(lambda x: x + 1)(tf.constant(1)) == 2
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())


def test_other_cancellations_are_passed_on(tmp_path):
    with pytest.raises(tf.errors.CancelledError), time_limit(60, tmp_path):
        raise tf.errors.CancelledError(None, None, "another one")
