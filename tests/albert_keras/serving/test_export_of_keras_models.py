"""Models in memory are exported as runs are: checked, with card, version and warm-up requests."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.runs.run import Run
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.serving.saved_model.server_ops import check_ops
from albert_keras.serving.saved_model.signatures import WARM_UP_FILE
from albert_keras.serving.serve_check import serve_check
from albert_keras.tasks.models import AlbertForClassification
from data_pipeline.errors import InputError
from tests.albert_keras.serving.local.running import running
from tests.albert_keras.serving.test_task_answers import DIRTY, assert_alike


def test_a_functional_model_over_strings_answers_as_its_predict(tiny_run, tiny_tokenizer, tmp_path):
    first = keras.Input((), dtype=tf.string, name="first")
    second = keras.Input((), dtype=tf.string, name="second")
    encoder = AlbertEncoder(Run.open(tiny_run).albert_config)
    inputs = AlbertPreprocessor(tiny_tokenizer, 32, pads_to="bucket")((first, second))
    head = keras.layers.Dense(3, activation="softmax", name="classes")
    model = keras.Model([first, second], head(encoder(inputs)["pooled_output"]))

    result = export(model, tmp_path / "mail")
    assert (result.version, result.step, result.signatures) == (1, None, ("serving_default",))
    check_ops(result.path)
    assert (result.path / WARM_UP_FILE).is_file() and result.largest_difference < 1e-5
    assert "`serving_default`" in (tmp_path / "mail" / "README.md").read_text()
    record = json.loads((result.path / "export.json").read_text())
    assert record["kind"] == "keras" and record["signatures"]["serving_default"]["inputs"] == {
        "first": ["string", [None]],
        "second": ["string", [None]],
    }
    texts = ["A ferry left.", "", "Rain. " * 30]
    expected = model.predict([np.array(texts), np.array(texts[::-1])], verbose=0)
    found = Predictor(result.path).ask("serving_default", first=texts, second=texts[::-1])
    np.testing.assert_allclose(found["classes"], expected, atol=1e-5)
    loaded = keras.models.load_model(result.keras_file)
    again = loaded.predict([np.array(texts), np.array(texts[::-1])], verbose=0)
    np.testing.assert_allclose(again, expected, atol=1e-5)


@pytest.mark.slow
def test_a_model_from_a_preset_answers_as_its_predict(tiny_run, tmp_path):
    model = AlbertForClassification.from_preset(
        tiny_run, labels=["dull", "warm"], sequence_length=32
    )
    result = export(model, tmp_path / "films", version=7)
    assert result.version == 7 and "classify" in result.signatures
    check_ops(result.path)
    texts = [text for text in DIRTY if text.strip()]
    assert_alike(Predictor(tmp_path / "films").answer(texts), model.predict(texts))
    with running([tmp_path / "films"]) as server:
        assert serve_check(server.url, "films").faults == ()


def test_a_model_that_takes_no_strings_is_refused(tmp_path):
    ids = keras.Input((8,), dtype=tf.int32, name="ids")
    model = keras.Model(ids, keras.layers.Embedding(9, 4)(ids))
    with pytest.raises(InputError, match="whose inputs are strings.*with the inputs ids"):
        export(model, tmp_path / "name")
    with pytest.raises(InputError, match="Received: Sequential with the inputs none"):
        export(keras.Sequential(), tmp_path / "name")
    assert not list(tmp_path.iterdir())
