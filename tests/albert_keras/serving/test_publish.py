"""An export appears whole, serves strings, and comes back in Keras."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.serving.publish import export
from albert_keras.training.run import Run
from data_pipeline.errors import InputError

FRESH_PROCESS = """
import sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
answer = model.signatures["serving_default"](tf.constant(["The [MASK] left.", "no mask", ""]))
print(sorted(answer), answer["pieces"].shape)
assert not any(name.split(".")[0] in ("albert_keras", "data_pipeline") for name in sys.modules)
"""


def test_a_version_holds_what_its_readme_says(tiny_export):
    names = {path.name for path in (tiny_export / "1").iterdir()}
    assert names >= {
        "saved_model.pb",
        "variables",
        "model.keras",
        "albert_config.json",
        "tokenizer",
        "export.json",
    }
    assert json.loads((tiny_export / "1" / "export.json").read_text())["step"] == 12
    assert [path.name for path in tiny_export.iterdir()] == ["1"]


def test_it_answers_in_a_process_with_tensorflow_and_its_text_operations_only(tiny_export):
    command = [sys.executable, "-c", FRESH_PROCESS, str(tiny_export / "1")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tiny_export)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['filled_text', 'pieces', 'scores'] (3, 1, 10)"


def test_serving_default_takes_one_flat_batch_of_strings(tiny_export):
    model = tf.saved_model.load(str(tiny_export / "1"))
    _, inputs = model.signatures["serving_default"].structured_input_signature
    assert inputs == {"text": tf.TensorSpec([None], tf.string, name="text")}


def test_the_keras_model_has_the_weights_of_the_checkpoint(tiny_export, tiny_run):
    model = keras.models.load_model(tiny_export / "1" / "model.keras")
    reader = tf.train.load_checkpoint(Run.open(tiny_run).checkpoints.prefix(12))
    for weight in model.weights:
        np.testing.assert_array_equal(weight, reader.get_tensor(weight.name.split(":")[0]))


def test_the_next_export_is_the_next_version(tiny_run, tiny_export, tmp_path):
    out = tmp_path / "name"
    assert [export(tiny_run, out).version, export(tiny_run, out, step=5).version] == [1, 2]


def test_a_version_that_exists_is_not_overwritten(tiny_run, tiny_export):
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        export(tiny_run, tiny_export, version=1)


def test_a_failed_check_leaves_no_version(tiny_run, tmp_path, monkeypatch):
    def fail(folder):
        raise RuntimeError("no answer")

    monkeypatch.setattr("albert_keras.serving.publish._check_answers", fail)
    with pytest.raises(RuntimeError):
        export(tiny_run, tmp_path / "models" / "name")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options, rule", [({"version": 0}, "int64"), ({"max_seq_length": 99}, "from 8")]
)
def test_impossible_options_are_refused(tiny_run, tmp_path, options, rule):
    with pytest.raises(InputError, match=rule):
        export(tiny_run, tmp_path / "name", **options)
