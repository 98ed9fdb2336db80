"""How weights are read: tensors of a TensorFlow checkpoint, or a model in a `.keras` file."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_tensors import (
    CheckpointTensors as CheckpointTensors,
    is_moment,
)
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.finetuning import AlbertForTask
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

#: Models that a `.keras` file may contain.
_MODELS = (AlbertEncoder, AlbertForPretraining, AlbertForTask)
_ENCODER = "bert/"


class ModelTensors:
    """Weights of a model in memory, with the interface of CheckpointTensors."""

    def __init__(self, model: keras.Model):
        self._weights = weight_names(model)
        self.shapes = {name: list(weight.shape) for name, weight in self._weights.items()}
        self.types = {name: weight.dtype.base_dtype for name, weight in self._weights.items()}

    def read(self, name: str) -> np.ndarray:
        return self._weights[name].numpy()


def shape_in_keras_file(path: Path) -> AlbertConfig:
    """Reads the shape of the model in a `.keras` file, without loading it.

    Keras imports any module that such a file names, even in safe mode. So it is only given files
    that name no class but one of this package.

    Raises:
        InputError: If it cannot be read, or contains any other model.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            content = json.loads(archive.read("config.json"))
        content.pop("compile_config", None)  # not loaded
        name, shape = content["class_name"], content["config"].get("config")
        model = keras.saving.get_registered_object(content["registered_name"])
        num_classes = json.dumps(content).count('"class_name"')
    except (zipfile.BadZipFile, OSError, ValueError, LookupError, TypeError, AttributeError) as e:
        raise InputError(f"`{path}` must be a `.keras` model. Received: {e!r}.") from e
    ours = isinstance(model, type) and issubclass(model, _MODELS) and model.__name__ == name
    if not ours or num_classes != 1 or not isinstance(shape, dict):
        raise InputError(f"`{path}` must contain a model of albert_keras. Received: {name}.")
    return AlbertConfig.from_dict(shape)


def open_keras_file(path: Path) -> ModelTensors:
    """Loads the weights of a `.keras` file; raises as `shape_in_keras_file`."""
    shape_in_keras_file(path)
    try:
        return ModelTensors(keras.models.load_model(path, compile=False, safe_mode=True))
    except (ValueError, TypeError, KeyError, OSError, tf.errors.OpError) as error:
        raise InputError(f"`{path}` cannot be loaded: {error}") from error


def encoder_names(tensors) -> list[str]:
    """Lists the encoder's weights in a source, sorted, without the moments of an optimizer."""
    return sorted(filter(is_encoder, tensors.shapes))


def encoder_digest(tensors) -> str:
    """Hashes names, shapes and float32 values of the encoder's weights: SHA-256, in hexadecimal.

    The digest depends neither on the kind of file nor on other tensors in it. Raises InputError if
    one of the weights is not of floats, or cannot be read.
    """
    digest = hashlib.sha256()
    for name in encoder_names(tensors):
        if not tensors.types[name].is_floating:
            raise InputError(f"{name} must contain floats. Received: {tensors.types[name].name}.")
        digest.update(f"{name} {tensors.shapes[name]}\n".encode())
        digest.update(np.ascontiguousarray(read_floats(tensors, name)))
    return digest.hexdigest()


def read_floats(tensors, name):
    """Reads a tensor as a float32 array; values beyond its range become infinite."""
    with np.errstate(over="ignore"):  # the caller checks for infinity
        return tensors.read(name).astype("<f4")


def is_encoder(name: str) -> bool:
    """Returns whether a name is that of a weight of the encoder, not of one of its moments."""
    return name.startswith(_ENCODER) and not is_moment(name)
