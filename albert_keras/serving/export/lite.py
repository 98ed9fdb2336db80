"""TensorFlow Lite: a model over ids, for phones, small devices and OpenVINO.

Files use built-in operations only. Those of a pre-trained model have two signatures:

encode      `input_ids`, `input_mask`, `segment_ids` int32 [1, S]
            → `sequence_output` float32 [1, S, H], `pooled_output` float32 [1, H]
masked_lm   `vector` float32 [1, H], the row of `sequence_output` at a [MASK]
            → `masked_lm_logits` float32 [1, V]

Either can be called without the other; weights are in the file once, whatever the depth. Those of a
fine-tuned model have `predict_tokens` of the SavedModel, for one text.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from albert_keras.keras_versions import variable_of
from albert_keras.layers.kernels import inference
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.text_rows import Rows
from albert_keras.serving.export.source import ExportSource
from data_pipeline.files import temporary_folder
from data_pipeline.tensorflow_line import stderr_without

#: How weights are stored: as float16, or as int8 with int8 products ("dynamic range").
LITE_WEIGHTS = ("float16", "int8")
_INPUTS = ("input_ids", "input_mask", "segment_ids")


def write_lite(folder: Path, source: ExportSource, variants: Sequence[str]) -> dict[str, Path]:
    """Writes a `.tflite` file for each variant, "float16" or "int8", of a float32 model."""
    files = {}
    for weights in variants:
        folder.mkdir(exist_ok=True)
        files[weights] = folder / f"model_{weights}.tflite"
        if isinstance(source.model, AlbertForPretraining):
            signatures = _pretrained_signatures(source.model, source.max_seq_length)
        else:
            model = source.string_model("float32")
            shape = (1, *source.model.ids_shape[1:-1], source.max_seq_length)
            signatures = {"predict_tokens": model.token_function(shape)}
        files[weights].write_bytes(convert_to_lite(source.model, signatures, weights))
    return files


def convert_to_lite(model: keras.Model, signatures: dict[str, Callable], weights: str) -> bytes:
    """Converts functions of a float32 model to the contents of a `.tflite` file.

    Args:
        signatures: Name -> tf.function with an input signature.
        weights: One of `LITE_WEIGHTS`.
    """
    module = tf.Module()
    module.weights = [*map(variable_of, model.weights)]
    with temporary_folder() as folder:
        tf.saved_model.save(module, folder, signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=list(signatures)
        )
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if weights == "float16":
            converter.target_spec.supported_types = [tf.float16]
        with stderr_without([b""]):  # counts of operations, from C++
            return converter.convert()


def _pretrained_signatures(model: AlbertForPretraining, max_seq_length: int):
    ids = [tf.TensorSpec([1, max_seq_length], tf.int32, name=name) for name in _INPUTS]
    vector = tf.TensorSpec([1, model.config.hidden_size], tf.float32, name="vector")

    @tf.function(input_signature=ids)
    def encode(input_ids, input_mask, segment_ids):
        inputs = dict(zip(_INPUTS, (input_ids, input_mask, segment_ids), strict=True))
        with inference():
            outputs = model.encoder(inputs)
        return {name: outputs[name] for name in ("sequence_output", "pooled_output")}

    @tf.function(input_signature=[vector])
    def masked_lm(vector):
        first = tf.zeros([1, 1], tf.int32)
        with inference():
            logits = model.masked_lm_head(vector[:, None], first)  # [1, 1, V]
        return {"masked_lm_logits": logits[:, 0]}

    return {"encode": encode, "masked_lm": masked_lm}


class LiteModel:
    """A `.tflite` file on this machine."""

    def __init__(self, path: Path):
        interpreter = tf.lite.Interpreter(str(path))
        self._run = {
            name: interpreter.get_signature_runner(name)
            for name in interpreter.get_signature_list()
        }

    def predict(self, features: Rows) -> dict[str, np.ndarray]:
        """Returns the outputs of a fine-tuned model for all N rows, arrays [N, ...]."""
        rows = []
        for number in range(len(features)):
            batch = features.batch(np.array([number]))
            rows.append(self._run["predict_tokens"](**{name: batch[name] for name in _INPUTS}))
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

    def encode(self, ids):
        """Returns `sequence_output` [1, S, H] and `pooled_output` [1, H] for the ids of a text."""
        shape = self._run["encode"].get_input_details()["input_ids"]["shape"]
        inputs = {name: np.zeros(shape, np.int32) for name in _INPUTS}
        inputs["input_ids"][0, : len(ids)], inputs["input_mask"][0, : len(ids)] = ids, 1
        return self._run["encode"](**inputs)

    def fill_masks(self, ids, positions):
        """Returns the probabilities of all pieces at the positions of masks, a list of [V]."""
        states = self.encode(ids)["sequence_output"]
        logits = (self._run["masked_lm"](vector=states[:, position]) for position in positions)
        return [tf.nn.softmax(one["masked_lm_logits"][0]).numpy() for one in logits]
