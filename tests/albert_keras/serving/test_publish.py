"""An export appears whole, serves strings, and comes back in Keras."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.runs.run import Run
from albert_keras.serving.publish import export

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
        "assets.extra",
        "albert_config.json",
        "tokenizer",
        "export.json",
    }
    assert json.loads((tiny_export / "1" / "export.json").read_text())["step"] == 12
    beside = {path.name for path in tiny_export.iterdir()}
    assert beside == {"1", "1.keras", "README.md"}


@pytest.mark.slow
def test_it_answers_in_a_process_with_tensorflow_and_its_text_operations_only(tiny_export):
    command = [sys.executable, "-c", FRESH_PROCESS, str(tiny_export / "1")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tiny_export)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['dropped_tokens', 'filled_text', 'pieces', 'scores'] (3, 1, 10)"
    assert "gradient" not in done.stderr


def test_serving_default_takes_one_flat_batch_of_strings(tiny_export):
    model = tf.saved_model.load(str(tiny_export / "1"))
    _, inputs = model.signatures["serving_default"].structured_input_signature
    assert inputs == {"text": tf.TensorSpec([None], tf.string, name="text")}


def test_the_keras_model_has_the_weights_of_the_checkpoint(tiny_export, tiny_run):
    model = keras.models.load_model(tiny_export / "1.keras")
    reader = tf.train.load_checkpoint(Run.open(tiny_run).checkpoints.prefix(12))
    for weight in model.weights:
        np.testing.assert_array_equal(weight, reader.get_tensor(weight.name.split(":")[0]))


@pytest.mark.slow
def test_the_next_export_is_the_next_version(tiny_run, tiny_export, tmp_path):
    out = tmp_path / "name"
    assert [export(tiny_run, out).version, export(tiny_run, out, step=5).version] == [1, 2]


def test_a_failed_check_leaves_no_version(tiny_run, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no answer")

    monkeypatch.setattr("albert_keras.serving.publish._write_model", fail)
    with pytest.raises(RuntimeError):
        export(tiny_run, tmp_path / "models" / "name")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_int8_weights_take_a_quarter_and_the_keras_model_has_its_own_precision(
    small_export, tiny_export
):
    def weight_bytes(version):
        return (version / "variables" / "variables.data-00000-of-00001").stat().st_size

    # The object graph lies in the same file, so that small models save less than large ones.
    assert weight_bytes(small_export.path) < 0.6 * weight_bytes(tiny_export / "1")
    kept, usual = (
        keras.models.load_model(path).weights
        for path in (small_export.keras_file, tiny_export / "1.keras")
    )
    for weight, expected in zip(kept, usual, strict=True):
        assert weight.dtype == tf.float32
        value = expected.numpy()
        np.testing.assert_array_equal(weight, np.float16(value) if value.ndim > 1 else value)
    record = json.loads((small_export.path / "export.json").read_text())
    assert record["keras_precision"] == "float16"
    usual = json.loads((tiny_export / "1" / "export.json").read_text())
    assert usual["keras_precision"] == "float32"


@pytest.mark.slow
def test_the_loss_of_each_variant_is_told_and_kept(small_export, tiny_export):
    losses = small_export.losses
    assert list(losses) == ["int8", "lite float16", "lite int8"]
    assert all(loss.agreement > 0.5 for loss in losses.values())
    assert losses["int8"].mean_difference > 0 and losses["int8"].num_predictions > 100
    record = json.loads((small_export.path / "export.json").read_text())
    assert record["precision"] == "int8"
    assert record["accuracy_loss"] == {name: loss._asdict() for name, loss in losses.items()}
    usual = json.loads((tiny_export / "1" / "export.json").read_text())
    assert usual["precision"] == "float32" and usual["accuracy_loss"] == {}
