"""Reads the `.keras` files of this package, without running anything that a file names."""

import contextlib
import importlib
import json
import zipfile
import zlib
from pathlib import Path

import keras
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.hdf5_file import open_hdf5
from albert_keras.formats.loading import ArrayTensors
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.preprocessor import restored_tokenizer
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.text_model import config_of_earlier_versions
from data_pipeline.errors import InputError
from data_pipeline.limits import check_memory, check_regular_file, parse_json
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Models that a `.keras` file may contain.
_MODELS = (AlbertEncoder, AlbertForPretraining, AlbertForTask)
_WEIGHTS = "model.weights.h5"
#: Files of a `.keras` file. Our models have no assets.
_MEMBERS = {"metadata.json", "config.json", _WEIGHTS}
#: Keras does not compress; files that were compressed again shrink by a tenth.
_MAX_GROWTH = 16
#: What zipfile raises for damaged bytes; of archives with a password a RuntimeError.
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError)


def shape_in_keras_file(path: Path) -> AlbertConfig:
    """Reads the shape of the model in a `.keras` file, without loading it.

    Raises:
        InputError: If it cannot be read, or contains a model that is not ours.
    """
    return AlbertConfig.from_dict(_settings_in(path)["config"])


def tokenizer_in_keras_file(path: Path) -> Tokenizer | None:
    """Reads the tokenizer of the preprocessor in a `.keras` file; None if it has none.

    Raises:
        InputError: If it is damaged, or as `shape_in_keras_file`.
    """
    settings = _settings_in(path)
    try:
        preprocessor = config_of_earlier_versions(settings).get("preprocessor")
        return preprocessor and restored_tokenizer(dict(preprocessor["tokenizer"]))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"The tokenizer of `{path}` is damaged: {error!r}.") from error


def _settings_in(path):
    """Returns what `get_config` returned for the model in a `.keras` file.

    Keras imports any module that such a file names, even in safe mode. So it is only given files
    that name no class but one of this package.
    """
    try:
        with _open_archive(path) as archive:
            content = parse_json(archive.read("config.json"))
        content.pop("compile_config", None)  # not loaded
        name, settings = content["class_name"], content["config"]
        shape = settings.get("config")
        importlib.import_module("albert_keras.saving")
        model = keras.saving.get_registered_object(content["registered_name"])
        num_classes = json.dumps(content).count('"class_name"')
    except InputError:
        raise
    except (*_DAMAGED, LookupError, TypeError, AttributeError) as e:
        raise InputError(f"`{path}` must be a `.keras` model. Received: {e!r}.") from e
    ours = isinstance(model, type) and issubclass(model, _MODELS) and model.__name__ == name
    if not ours or num_classes != 1 or not isinstance(shape, dict):
        raise InputError(f"`{path}` must contain a model of albert_keras. Received: {name}.")
    return settings


def open_keras_file(path: Path) -> ArrayTensors:
    """Loads the weights of a `.keras` file; raises as `shape_in_keras_file`."""
    return ArrayTensors.of_model(open_keras_model(path))


def open_keras_model(path: Path) -> keras.Model:
    """Loads the model in a `.keras` file, not compiled; raises as `shape_in_keras_file`."""
    shape_in_keras_file(path)
    try:
        # Keras opens the HDF5 file in it without any check.
        with _open_archive(path) as archive, open_hdf5(_WEIGHTS, archive.read(_WEIGHTS)):
            pass
        return keras.models.load_model(path, compile=False, safe_mode=True)
    except (*_DAMAGED, LookupError, TypeError, tf.errors.OpError) as error:
        raise InputError(f"`{path}` cannot be loaded: {error}") from error


@contextlib.contextmanager
def _open_archive(path):
    """Opens the archive that a `.keras` file is, after checking what it unpacks to."""
    check_regular_file(path)
    with zipfile.ZipFile(path) as archive:
        sizes = {item.filename: item.file_size for item in archive.infolist()}
        total, limit = sum(sizes.values()), _MAX_GROWTH * path.stat().st_size
        if not sizes.keys() <= _MEMBERS or len(sizes) < len(archive.infolist()):
            raise InputError(
                f"`{path}` must contain {', '.join(sorted(_MEMBERS))} and nothing else. "
                f"Received: {', '.join(sorted(sizes))[:500]}."
            )
        if total > limit:
            raise InputError(
                f"`{path}` must unpack to at most {limit:,} bytes, {_MAX_GROWTH} times its size. "
                f"Received: {total:,} bytes."
            )
        check_memory(total, f"`{path}`")
        yield archive
