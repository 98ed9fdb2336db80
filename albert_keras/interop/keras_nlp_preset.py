"""Folders of KerasNLP's presets: ALBERT's backbone and its masked-LM model, read and written.

Nothing that a folder names is made or run: sizes come from `config.json`, numbers from the HDF5
files. What is written loads in KerasNLP 0.12.1: the backbone with Keras 2.15 and Keras 3, the
masked-LM model with Keras 3 only, as that version cannot load heads with Keras 2.
"""

import json
import logging
from pathlib import Path

import numpy as np

from albert_keras.interop.google_checkpoint import read_reference_tensors
from albert_keras.interop.keras_nlp_config import (
    arguments_of,
    read_backbone,
    read_json,
    serialized,
    settings_of,
)
from albert_keras.interop.keras_nlp_hdf5 import read_arrays, write_arrays
from albert_keras.interop.keras_nlp_tables import from_theirs, rows_of_file, to_theirs
from albert_keras.interop.model_weights import HEADS, ModelWeights
from data_pipeline.errors import InputError

NAME = "keras-nlp"
CONFIG, WEIGHTS = "config.json", "model.weights.h5"
TASK_CONFIG, TASK_WEIGHTS = "task.json", "task.weights.h5"
TOKENIZER, VOCABULARY = "tokenizer.json", "assets/tokenizer/vocabulary.spm"
_VERSIONS = {"keras_version": "3.3.3", "keras_nlp_version": "0.12.1"}
_BACKBONE = "layers/albert_backbone/"  # in the weights of a task, which repeat the backbone's
_MOST_BYTES = 64 * 2**20  # a vocabulary has one or two million

logger = logging.getLogger(__name__)


def is_source(path):
    """Tells whether a path looks like a preset, or like a Keras file, which `read` refuses."""
    path = Path(path)
    if path.suffix in (".keras", ".h5"):
        return path.is_file()
    try:
        return {"class_name", "config"} <= read_json(path / CONFIG).keys()
    except InputError:
        return False


def read(path, trust_pickle=False):
    """Reads a preset.

    Args:
        path: str or Path. The folder.
        trust_pickle: bool. Not needed.

    Returns:
        ModelWeights. With the masked-LM head if there is a `task.json`.

    Raises:
        InputError: If it is a single Keras file, names another class, or its weights are not those
            of the configuration: with all that are wrong.

    Source:
        `utils/preset_utils.py` and `models/task.py` of KerasNLP 0.12.1.
    """
    path = Path(path)
    if path.suffix in (".keras", ".h5") and not path.is_dir():
        raise InputError(
            f"`{path}` is not read: Keras loads such a file by running what it names. Where you "
            'trust it, load it with KerasNLP and Keras 3, call `model.save_to_preset("folder")`, '
            "and give that folder."
        )
    config = read_backbone(read_json(path / CONFIG), path / CONFIG)
    arrays = read_arrays(path / WEIGHTS)
    has_head = (path / TASK_CONFIG).exists()
    if has_head:
        arrays |= _read_head(path, config, arrays)
    config, tensors = from_theirs(config, rows_of_file(config, has_head), arrays, path)
    return ModelWeights(
        config=config,
        tensors=tensors,
        source=str(path),
        tokenizer_files=_read_vocabulary(path / VOCABULARY),
    )


def write(weights, folder):
    """Writes a preset.

    KerasNLP's masked-LM head adds 1e-5 to the variance it divides by, where we add 1e-12: its
    scores differ by a share of about 5e-6 / variance.

    Args:
        weights: ModelWeights.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If KerasNLP's AlbertBackbone cannot express the model, or a tensor is missing.
    """
    folder, config = Path(folder), weights.config
    arguments = {"name": "albert_backbone", "trainable": True} | arguments_of(config)
    has_head = "masked_lm" in weights.heads
    tensors = read_reference_tensors(config, _with_a_place(weights), weights.source)
    arrays = to_theirs(config, rows_of_file(config, has_head), tensors)
    head = {name: arrays.pop(name) for name in list(arrays) if "/masked_lm_head/" in name}
    backbone = serialized("AlbertBackbone", arguments)
    write_arrays(folder / WEIGHTS, arrays)
    _write_json(folder / CONFIG, backbone)
    count = sum(array.size for array in arrays.values())
    _write_json(folder / "metadata.json", _VERSIONS | {"parameter_count": count})
    tokenizer = _write_tokenizer(weights.tokenizer_files, folder)
    if has_head:
        repeated = {
            name.replace("layers/", _BACKBONE + "layers/", 1): a for name, a in arrays.items()
        }
        write_arrays(folder / TASK_WEIGHTS, repeated | head)
        settings = {
            "backbone": backbone,
            "preprocessor": tokenizer and _preprocessor(config, tokenizer),
            "name": "albert_masked_lm",
        }
        _write_json(folder / TASK_CONFIG, serialized("AlbertMaskedLM", settings))


def _read_head(path, config, backbone):
    """Returns the head's arrays; makes sure that the rest is what the backbone's files say."""
    settings = settings_of(read_json(path / TASK_CONFIG), "AlbertMaskedLM", path / TASK_CONFIG)
    if read_backbone(settings.get("backbone"), path / TASK_CONFIG) != config:
        raise InputError(f"`{path / TASK_CONFIG}` should describe the backbone of `{CONFIG}`.")
    head = {}
    for name, array in read_arrays(path / TASK_WEIGHTS).items():
        if not name.startswith((_BACKBONE, "optimizer/")):
            head[name] = array
        elif name.startswith(_BACKBONE):
            other = backbone.get(name.removeprefix(_BACKBONE))
            if other is None or not np.array_equal(array, other):
                raise InputError(
                    f"{name} in `{path / TASK_WEIGHTS}` should be as in `{WEIGHTS}`, and is not."
                )
    return head


def _with_a_place(weights):
    """Returns the tensors of the encoder and the masked-LM head; says what stays behind."""
    kept = ("bert/", *HEADS["masked_lm"])
    left = sorted(name for name in weights.tensors if not name.startswith(kept))
    if left:
        logger.warning("KerasNLP has no place for these, they are left out: %s", ", ".join(left))
    return {name: array for name, array in weights.tensors.items() if name.startswith(kept)}


def _read_vocabulary(path):
    if not path.is_file():
        return {}
    if path.stat().st_size > _MOST_BYTES:
        raise InputError(f"`{path}` should be a vocabulary, of at most {_MOST_BYTES:,} bytes.")
    return {"spiece.model": path.read_bytes()}


def _write_tokenizer(files, folder):
    """Writes a SentencePiece vocabulary; returns how the tokenizer is serialised, or None."""
    models = [name for name in files if name.endswith(".model")]
    left = sorted(set(files) - set(models[:1]))
    if left:
        logger.warning("KerasNLP's AlbertTokenizer does not use %s.", ", ".join(left))
    if not models:
        return None
    settings = {"trainable": True, "dtype": "int32", "proto": None, "sequence_length": None}
    tokenizer = serialized("AlbertTokenizer", {"name": "albert_tokenizer"} | settings)
    (folder / VOCABULARY).parent.mkdir(parents=True)
    (folder / VOCABULARY).write_bytes(files[models[0]])
    _write_json(folder / TOKENIZER, tokenizer)
    return tokenizer


def _preprocessor(config, tokenizer):
    """Returns how KerasNLP serialises its preprocessor, with its own defaults."""
    settings = {
        "name": "albert_masked_lm_preprocessor",
        "trainable": True,
        "dtype": "float32",
        "tokenizer": tokenizer,
        "sequence_length": config.max_position_embeddings,
        "truncate": "round_robin",
        "mask_selection_rate": 0.15,
        "mask_selection_length": 96,
        "mask_token_rate": 0.8,
        "random_token_rate": 0.1,
    }
    return serialized("AlbertMaskedLMPreprocessor", settings)


def _write_json(path, values):
    path.write_text(json.dumps(values, indent=4) + "\n", encoding="utf-8")
