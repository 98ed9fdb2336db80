"""Reads the `.keras` files of this package, without running anything that a file names."""

import contextlib
import functools
import json
import zipfile
import zlib
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.hdf5_file import open_hdf5
from albert_keras.runs.model_record import ModelRecord
from data_pipeline.errors import InputError
from data_pipeline.limits import check_memory, check_regular_file, parse_json
from data_pipeline.tokenizers.tokenization import Tokenizer

_WEIGHTS = "model.weights.h5"
#: The group of that file with all weights of ours, each by its name with "." for "/".
_OWN_WEIGHTS = "vars"
#: Files of a `.keras` file. Our models have no assets.
_MEMBERS = {"metadata.json", "config.json", _WEIGHTS}
#: Keras does not compress; files that were compressed again shrink by a tenth.
_MAX_GROWTH = 16
#: What zipfile raises for damaged bytes; of archives with a password a RuntimeError.
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError)


class KerasFile:
    """What a `.keras` file of this package says about its model, and its weights.

    Keras imports any module that such a file names, even in safe mode. So it is only given files
    that name no class but one of this package; weights and tokenizer are read without it.

    Args:
        path: Path. The file; its weights are read when they are used.

    Raises:
        InputError: If it cannot be read, or contains a model that is not ours.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            with _open_archive(path) as archive:
                content = parse_json(archive.read("config.json"))
            content.pop("compile_config", None)  # not loaded
            name, num_classes = content["class_name"], json.dumps(content).count('"class_name"')
        except InputError:
            raise
        except (*_DAMAGED, LookupError, TypeError, AttributeError) as e:
            raise InputError(f"`{path}` must be a `.keras` model. Received: {e!r}.") from e
        if num_classes != 1:
            raise InputError(f"`{path}` must contain a model of albert_keras. Received: {name}.")
        self.record = ModelRecord.of_json(content, path)
        self.albert_config = AlbertConfig.from_dict(self.record.config["config"])

    def tokenizer(self) -> Tokenizer | None:
        """Reads the tokenizer of the preprocessor; None if there is none, InputError if damaged."""
        preprocessor = self.record.preprocessor
        try:
            return preprocessor and Tokenizer.from_config(preprocessor["tokenizer"])
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"The tokenizer of `{self.path}` is damaged: {error!r}.") from error

    @property
    def shapes(self) -> dict[str, list[int]]:
        """Shapes of the weights, by the reference's names; InputError as `read`."""
        return {name: list(array.shape) for name, array in self._arrays.items()}

    def read(self, name: str) -> np.ndarray:
        """Returns a weight, float32; InputError if the HDF5 file is damaged, see `open_hdf5`."""
        return self._arrays[name]

    @functools.cached_property
    def _arrays(self):
        """Weights by name, without those of layers that a subclass adds: Keras stores these in
        groups of theirs.
        """
        arrays = {}
        with self._weights() as stored:
            for name, array in stored.items():
                group, _, key = name.rpartition("/")
                if group == _OWN_WEIGHTS:
                    arrays[key.replace(".", "/")] = array[()].astype(np.float32)
        return arrays

    def load(self) -> keras.Model:
        """Loads the model by Keras, not compiled; InputError as `read`."""
        try:
            with self._weights():  # Keras opens the HDF5 file in it without any check
                pass
            return keras.models.load_model(self.path, compile=False, safe_mode=True)
        except (*_DAMAGED, LookupError, TypeError, tf.errors.OpError) as error:
            raise InputError(f"`{self.path}` cannot be loaded: {error}") from error

    @contextlib.contextmanager
    def _weights(self):
        """Opens the HDF5 file of the weights, see `open_hdf5`."""
        try:
            with _open_archive(self.path) as archive:
                content = archive.read(_WEIGHTS)
        except (*_DAMAGED, LookupError) as error:
            raise InputError(f"`{self.path}` cannot be loaded: {error}") from error
        with open_hdf5(_WEIGHTS, content) as arrays:
            yield arrays


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
