"""Folders of KerasNLP's presets: ALBERT's backbone and its vocabulary, read and written.

No class that a folder names is created or run: sizes come from `config.json`, numbers from the
HDF5 file (`model.weights.h5`). Its attributes, where a whole model's file stores what to run, are
never read, and whatever would make HDF5 open other files or expand data is refused.

What is written loads in KerasNLP 0.12.1 with Keras 2.15 and Keras 3. That version cannot load heads
with Keras 2: `to_keras_nlp` converts a model with its masked-LM head in memory.
"""

import re
from pathlib import Path

import h5py
import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import CONFIG, KERAS_NLP_WEIGHTS as WEIGHTS
from albert_keras.formats.hdf5_file import open_hdf5
from albert_keras.formats.keras_nlp import (
    ARGUMENTS,
    arguments_of,
    config_of,
    from_theirs,
    logger,
    rows_of,
    to_theirs,
)
from albert_keras.formats.model_folder import read_vocabulary_file
from albert_keras.formats.model_weights import ModelWeights
from albert_keras.formats.tensor_table import read_reference_tensors
from albert_keras.formats.vocabulary import vocabulary_of
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json

TOKENIZER, VOCABULARY = "tokenizer.json", "assets/tokenizer/vocabulary.spm"
_VERSIONS = {"keras_version": "3.3.3", "keras_nlp_version": "0.12.1"}
_MODULES = {
    "AlbertBackbone": "albert_backbone",
    "AlbertTokenizer": "albert_tokenizer",
}
#: Keys of a serialized object; the last two occur in older presets.
_OBJECT_KEYS = {"module", "class_name", "config", "registered_name", "assets", "weights"}
_NOT_SIZES = {"dropout", "name", "trainable", "dtype"}
_MAX_JSON_BYTES = 2**20
#: Attribute -> layer in a file of weights: its class in snake case, counted from the second on.
_FILE_LAYERS = {
    "token_embedding": "reversible_embedding",
    "segment_embedding": "embedding",
    "position_embedding": "position_embedding",
    "embeddings_layer_norm": "layer_normalization",
    "embeddings_projection": "dense",
    "pooled_dense": "dense_1",
}
#: Keras 3 calls a part of its attention "query_dense", Keras 2 "_query_dense".
_ATTENTION = re.compile(r"(?<=/_self_attention_layer/)_?((?:query|key|value|output)_dense)(?=/)")


def read(path, trust_pickle=False):
    """Reads the backbone of a preset; see `formats`. The head of a task, if any, is not read.

    Source:
        `utils/preset_utils.py` of KerasNLP 0.12.1.
    """
    path = Path(path)
    config = _read_backbone(read_json(path / CONFIG, max_bytes=_MAX_JSON_BYTES), path / CONFIG)
    config, tensors = from_theirs(config, _rows_of_file(config), read_arrays(path / WEIGHTS), path)
    return ModelWeights(config, tensors, str(path), _tokenizer_files(path))


def read_tokenizer(path):
    """Reads the vocabulary of a preset; None if there is none."""
    return vocabulary_of(_tokenizer_files(Path(path)), path)


def _tokenizer_files(folder):
    vocabulary = folder / VOCABULARY
    return {"spiece.model": read_vocabulary_file(vocabulary)} if vocabulary.is_file() else {}


def write(weights, folder):
    """Writes a preset of the backbone; see `formats`. Heads are dropped with a warning."""
    folder, config = Path(folder), weights.config
    arguments = {"name": "albert_backbone", "trainable": True} | arguments_of(config)
    dropped = sorted(name for name in weights.tensors if not name.startswith("bert/"))
    if dropped:
        logger.warning(
            "a preset of KerasNLP cannot store these tensors, which are dropped: %s",
            ", ".join(dropped),
        )
    tensors = {name: weights.tensors[name] for name in weights.tensors if name not in dropped}
    tensors = read_reference_tensors(config, tensors, weights.source)
    arrays = to_theirs(config, _rows_of_file(config), tensors)
    write_arrays(folder / WEIGHTS, arrays)
    write_json(folder / CONFIG, _serialized("AlbertBackbone", arguments), indent=4)
    count = sum(array.size for array in arrays.values())
    write_json(folder / "metadata.json", _VERSIONS | {"parameter_count": count}, indent=4)
    _write_tokenizer(weights.tokenizer_files, folder)


def _rows_of_file(config):
    """As `keras_nlp.rows_of`, with the names that the weights have in a preset's HDF5 file."""
    rows = []
    for row in rows_of(config, False):
        layer, rest = row.theirs.split("/", 1)
        if layer == "transformer_layers":
            group, inner, rest = rest.split("/", 2)
            number = int(group) * config.inner_group_num + int(inner)
            layer = f"transformer_encoder_{number}" if number else "transformer_encoder"
        else:
            layer = _FILE_LAYERS[layer]
        rows.append(row._replace(theirs=f"layers/{layer}/{rest}"))
    return rows


def _read_backbone(values, source) -> AlbertConfig:
    """Returns the configuration of a serialized AlbertBackbone.

    InputError if it is something else, a key is missing or unknown, or a value is not valid.
    """
    settings = _settings_of(values, "AlbertBackbone", source)
    expected = set(ARGUMENTS) | {"dropout"}
    missing, unknown = expected - set(settings), set(settings) - expected - _NOT_SIZES
    if missing or unknown:
        raise InputError(
            f"`{source}` must have the arguments of AlbertBackbone. "
            f"Missing: {sorted(missing)}; unknown: {sorted(unknown)}."
        )
    for name in ARGUMENTS:
        if type(settings[name]) is not int:
            raise InputError(
                f"`{name}` in `{source}` must be an integer. Received: {settings[name]!r}."
            )
    config = config_of(settings)
    arguments_of(config)  # refuses groups of unequal depth
    return config


def _settings_of(values, class_name, source) -> dict:
    """Returns the settings of a serialized object of exactly one class.

    InputError if it names another class, has unknown keys or no settings.
    """
    values = values if isinstance(values, dict) else {}
    expected = {"class_name": class_name, "registered_name": f"keras_nlp>{class_name}"}
    received = {key: values.get(key) for key in expected}
    if received != expected or not str(values.get("module")).startswith("keras_nlp."):
        raise InputError(
            f"`{source}` must describe KerasNLP's {class_name}. Received: "
            f"{[values.get('module'), *received.values()]}."
        )
    if set(values) - _OBJECT_KEYS or not isinstance(values.get("config"), dict):
        raise InputError(f"`{source}` must contain `config`. Received keys: {sorted(values)}.")
    return values["config"]


def _serialized(class_name, settings):
    """Returns how KerasNLP serializes an object."""
    return {
        "module": f"keras_nlp.src.models.albert.{_MODULES[class_name]}",
        "class_name": class_name,
        "config": settings,
        "registered_name": f"keras_nlp>{class_name}",
    }


def _write_tokenizer(files, folder):
    """Writes a SentencePiece vocabulary, if there is one."""
    models = [name for name in files if name.endswith(".model")]
    unused = sorted(set(files) - set(models[:1]))
    if unused:
        logger.warning("KerasNLP's AlbertTokenizer does not use %s.", ", ".join(unused))
    if models:
        settings = {"trainable": True, "dtype": "int32", "proto": None, "sequence_length": None}
        tokenizer = _serialized("AlbertTokenizer", {"name": "albert_tokenizer"} | settings)
        (folder / VOCABULARY).parent.mkdir(parents=True)
        (folder / VOCABULARY).write_bytes(files[models[0]])
        write_json(folder / TOKENIZER, tokenizer, indent=4)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Reads all arrays of a file of weights.

    Parts of attention are named as in Keras 2; an array with both names is returned once.

    Raises:
        InputError: As `open_hdf5`, or if one array has two values.
    """
    arrays = {}
    with open_hdf5(path) as datasets:
        for name, dataset in datasets.items():
            array = dataset[()]
            name = _ATTENTION.sub(r"_\1", name)
            if name in arrays and not np.array_equal(arrays[name], array):
                raise InputError(
                    f"{name} in `{path}` has two values, one for Keras 2 and one for Keras 3."
                )
            arrays[name] = array
    return arrays


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray]):
    """Writes arrays, named as `read_arrays` does, such that Keras 2 and Keras 3 find them."""
    with h5py.File(path, "w") as file:
        file.create_group("vars")
        for name, array in arrays.items():
            file[name] = array
            other = _ATTENTION.sub(r"\1", name)
            if other != name:
                file[other] = file[name]  # a second name for the same bytes
            for layer in _layers(name) + _layers(other):
                file.require_group(f"{layer}/vars")  # Keras expects it without weights as well


def _layers(name):
    """Returns the names of the layers that contain an array, from the outermost on."""
    parts = name.partition("/vars/")[0].split("/")
    return ["/".join(parts[: i + 1]) for i, part in enumerate(parts) if part != "layers"]
