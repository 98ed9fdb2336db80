"""The foreign formats by name, and which of them a path contains."""

import importlib
from pathlib import Path
from types import ModuleType

#: Name -> module with `is_source`, `read` and `write`, and how to recognize it.
FOREIGN_FORMATS = {
    "google": (
        "albert_keras.formats.google_checkpoint",
        "a checkpoint of google-research/albert (`.index`) with albert_config.json",
    ),
    "google-bert": (
        "albert_keras.formats.google_bert",
        "a checkpoint of google-research/bert (`.index`) with bert_config.json",
    ),
    "hugging-face": (
        "albert_keras.formats.hugging_face",
        "config.json with model.safetensors or pytorch_model.bin",
    ),
    "keras-nlp": (
        "albert_keras.formats.keras_nlp_preset",
        "a preset of KerasNLP (config.json, model.weights.h5)",
    ),
}


def load_foreign(name: str) -> ModuleType:
    """Returns the module of one of `FOREIGN_FORMATS`."""
    return importlib.import_module(FOREIGN_FORMATS[name][0])


def foreign_formats_of(path: str | Path) -> list[str]:
    """Returns the names of the formats that a path looks like."""
    return [name for name in FOREIGN_FORMATS if load_foreign(name).is_source(Path(path))]
