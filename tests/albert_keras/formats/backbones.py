"""KerasNLP's ALBERT with the weights of ours; KerasHub's where that is installed instead."""

import importlib
import tempfile
from pathlib import Path

from albert_keras.formats import keras_nlp
from albert_keras.formats.opened_model import OpenedModel
from data_pipeline.limits import read_json
from tests.albert_keras.numpy_albert import weights_by_name
from tests.keras_line import IS_KERAS_3


def library():
    return importlib.import_module("keras_hub" if IS_KERAS_3 else "keras_nlp")


def backbone_of(encoder):
    """Returns an AlbertBackbone with the weights and the dtype policy of an AlbertEncoder."""
    weights = OpenedModel.of(encoder.config, weights_by_name(encoder), "an encoder")
    with tempfile.TemporaryDirectory() as folder:
        keras_nlp.write(weights, Path(folder))
        arguments = read_json(f"{folder}/config.json")["config"]
        backbone = library().models.AlbertBackbone(**arguments, dtype=encoder.dtype_policy.name)
        backbone.load_weights(f"{folder}/model.weights.h5")
    return backbone
