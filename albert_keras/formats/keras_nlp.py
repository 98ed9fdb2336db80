"""Folders of KerasNLP's presets: ALBERT's backbone and its vocabulary, read and written.

No class that a folder names is created or run: sizes come from `config.json`, numbers from the
HDF5 file (`model.weights.h5`). What is written loads in KerasNLP 0.12.1, with Keras 2.15 and
Keras 3, by `AlbertBackbone.from_preset(folder)`.

Source: `AlbertBackbone`, `TransformerEncoder` and `utils/preset_utils.py` of KerasNLP 0.12.1.
"""

import json
import logging
import re
from pathlib import Path

import h5py
import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import CONFIG
from albert_keras.formats.hdf5_file import open_hdf5
from albert_keras.formats.model_weights import blank, check_expressible, without_blank
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.formats.tensor_table import Naming, Row, expand, read_by_table, write_by_table
from albert_keras.formats.vocabulary import KERAS_NLP_FILE
from albert_keras.shape import POOLER, PROJECTION, encoder_shapes
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import reading_json
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE

logger = logging.getLogger(__name__)

WEIGHTS = "model.weights.h5"
_VERSIONS = {"keras_version": "3.3.3", "keras_nlp_version": "0.12.1"}
#: The backbone's argument -> our field. `dropout` sets both of ours.
_ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_groups": "num_hidden_groups",
    "num_inner_repetitions": "inner_group_num",
    "embedding_dim": "embedding_size",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
_NOT_SIZES = {"dropout", "name", "trainable", "dtype"}
_NAMING = Naming("/vars/0", "/vars/1", "/vars/0", "/vars/1")
#: Layers of the model, which their file names by class, counted from the second on.
_TABLE = (
    Row("bert/embeddings/word_embeddings", "layers/reversible_embedding/vars/0"),
    Row("bert/embeddings/token_type_embeddings", "layers/embedding/vars/0"),
    Row("bert/embeddings/position_embeddings", "layers/position_embedding/vars/0"),
    *_NAMING.norm("bert/embeddings/LayerNorm", "layers/layer_normalization"),
    *_NAMING.dense(PROJECTION, "layers/dense"),
    *_NAMING.dense(POOLER, "layers/dense_1"),
    *_NAMING.block(
        "layers/transformer_encoder_{n}/",
        query="_self_attention_layer/_{}_dense",
        output="_self_attention_layer/_output_dense",
        attention_norm="_self_attention_layer_norm",
        wide="_feedforward_intermediate_dense",
        narrow="_feedforward_output_dense",
        last_norm="_feedforward_layer_norm",
    ),
)
#: Keras 3 calls a part of its attention "query_dense", Keras 2 "_query_dense".
_ATTENTION = re.compile(r"(?<=/_self_attention_layer/)_?((?:query|key|value|output)_dense)(?=/)")


def read(path):
    """Reads the backbone of a preset; see `formats`. The head of a task, if any, is not read.

    KerasNLP always projects the embeddings. Where E = H, a projection that changes nothing is
    dropped; `write` adds one where our model has none.
    """
    path = Path(path)
    config = _read_config(path / CONFIG)
    projected = config.replace(embedding_projection="always")
    rows, shapes, theirs = _rows(config), encoder_shapes(projected), _read_arrays(path / WEIGHTS)
    for row in rows:
        split = _with_heads(row.ours, config)
        if split is not None and np.shape(theirs.get(row.theirs)) == split:
            theirs[row.theirs] = theirs[row.theirs].reshape(shapes[row.ours])
    tensors = without_blank(PROJECTION, config, read_by_table(rows, theirs, shapes, path))
    if config.embedding_size == config.hidden_size and f"{PROJECTION}/kernel" in tensors:
        config = projected
    return OpenedModel.of(config, tensors, path)


def write(model: OpenedModel, folder: Path):
    """Writes a preset of the backbone; see `formats`. Heads are dropped with a warning."""
    config, tensors = model.albert_config, model.arrays
    arguments = _arguments_of(config)
    dropped = sorted(name for name in tensors if not name.startswith("bert/"))
    if dropped:
        logger.warning(
            "a preset of KerasNLP cannot store these tensors, which are dropped: %s",
            ", ".join(dropped),
        )
    tensors = {name: array for name, array in tensors.items() if name not in dropped}
    if not config.projects_embeddings:
        tensors = tensors | blank(PROJECTION, config)
    for name, array in tensors.items():
        tensors[name] = np.reshape(array, _with_heads(name, config) or array.shape)
    arrays = write_by_table(_rows(config), tensors)
    _write_arrays(folder / WEIGHTS, arrays)
    arguments = {"name": "albert_backbone", "trainable": True} | arguments
    write_json(folder / CONFIG, _serialized("AlbertBackbone", "albert_backbone", arguments))
    count = sum(array.size for array in arrays.values())
    write_json(folder / "metadata.json", _VERSIONS | {"parameter_count": count})


def _rows(config):
    """Returns the table of a model that KerasNLP can express."""
    rows = expand(_TABLE, config.num_hidden_groups, config.inner_group_num)
    return [row._replace(theirs=row.theirs.replace("_encoder_0/", "_encoder/")) for row in rows]


def _with_heads(name, config):
    """Returns the shape of a weight in Keras' `MultiHeadAttention`, where heads are an axis.

    None for all weights that are elsewhere.
    """
    heads, size = config.num_attention_heads, config.hidden_size
    split = (heads, size // heads)
    if name.endswith("attention_1/output/dense/kernel"):
        return (*split, size)
    if "/attention_1/self/" in name:
        return (size, *split) if name.endswith("kernel") else split
    return None


def _read_config(path):
    """Returns the configuration of a serialized AlbertBackbone; InputError if it is another one."""
    with reading_json(path) as values:
        registered_name, settings = values["registered_name"], values["config"]
        if registered_name not in ("keras_nlp>AlbertBackbone", "keras_hub>AlbertBackbone"):
            raise InputError(
                f"`{path}` must describe KerasNLP's AlbertBackbone. Received: {registered_name}."
            )
        if unknown := sorted(settings.keys() - _ARGUMENTS.keys() - _NOT_SIZES):
            raise InputError(f"`{path}` has unknown arguments: {', '.join(unknown)}.")
        config = AlbertConfig(
            hidden_act="gelu",
            hidden_dropout_prob=settings["dropout"],
            attention_probs_dropout_prob=settings["dropout"],
            **{ours: settings[theirs] for theirs, ours in _ARGUMENTS.items()},
        )
    _arguments_of(config)  # refuses groups of unequal depth
    return config


def _arguments_of(config):
    """Returns the backbone's arguments; InputError if it cannot express the model."""
    layers = config.num_hidden_layers
    allowed = {
        "sharing": "all",
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.attention_probs_dropout_prob,
        "num_hidden_groups": tuple(one for one in range(1, layers + 1) if layers % one == 0),
    }
    check_expressible("KerasNLP's AlbertBackbone", config, allowed)
    arguments = {theirs: getattr(config, ours) for theirs, ours in _ARGUMENTS.items()}
    return arguments | {"dropout": config.hidden_dropout_prob}


def tokenizer_files(model: bytes) -> dict[str, bytes]:
    """Returns the files of a SentencePiece model in a preset."""
    settings = {"name": "albert_tokenizer", "trainable": True, "dtype": "int32"}
    settings |= {"proto": None, "sequence_length": None}
    described = _serialized("AlbertTokenizer", "albert_tokenizer", settings)
    return {KERAS_NLP_FILE: model, PIECES_FILE: json.dumps(described, indent=2).encode()}


def _serialized(class_name, module, settings):
    return {
        "module": f"keras_nlp.src.models.albert.{module}",
        "class_name": class_name,
        "config": settings,
        "registered_name": f"keras_nlp>{class_name}",
    }


def _read_arrays(path):
    """Reads all arrays of a file of weights.

    Parts of attention are named as in Keras 2; an array with both names is returned once, and if
    it has two values, an InputError is raised.
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


def _write_arrays(path, arrays):
    """Writes arrays, named as `_read_arrays` does, such that Keras 2 and Keras 3 find them."""
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
