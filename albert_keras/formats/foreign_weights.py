"""Initial weights in the format of another program, converted while they are loaded."""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.foreign_formats import foreign_formats_of, load_foreign
from albert_keras.formats.foreign_hint import convert_command, is_ours
from albert_keras.formats.vocabulary import check_identity, vocabulary_of
from albert_keras.models.weight_count import model_line
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Its checkpoints have our names of tensors and are read without conversion.
_GOOGLE = "google"

logger = logging.getLogger(__name__)


class ArrayTensors:
    """Arrays with the interface of `CheckpointTensors`."""

    def __init__(self, tensors: dict[str, np.ndarray]):
        self._tensors = tensors
        self.shapes = {name: list(array.shape) for name, array in tensors.items()}
        self.types = {name: tf.as_dtype(array.dtype) for name, array in tensors.items()}

    def read(self, name: str) -> np.ndarray:
        """Returns a tensor."""
        return np.asarray(self._tensors[name])


class ForeignWeights(NamedTuple):
    """A foreign model as our names and shapes."""

    format: str  #: One of `FOREIGN_FORMATS`.
    tensors: ArrayTensors
    shape: AlbertConfig
    tokenizer: Tokenizer | None  #: None if it has no vocabulary, or none was wanted.


def read_foreign(path: Path, wants_tokenizer: bool = True) -> ForeignWeights | None:
    """Reads a model of another program, if a path contains one.

    Args:
        path: Path. Folder, file or prefix of a checkpoint.
        wants_tokenizer: bool. Whether to read the vocabulary beside the weights.

    Returns:
        ForeignWeights; None if the format is unknown, or if it is the format of
        google-research/albert or of this package.

    Raises:
        InputError: If it has several formats, or cannot be read or expressed; the error names the
            command that converts it with other options.
    """
    if is_ours(path) or path.suffix == ".keras":
        return None
    formats = [name for name in foreign_formats_of(path) if name != _GOOGLE]
    if not formats:
        return None
    name = formats[0]
    if len(formats) > 1:
        command = convert_command(path, f" --from {name}")
        raise InputError(
            f"`{path}` matches several formats: {', '.join(formats)}. Convert it first and choose "
            f"one, for example `{command}`."
        )
    try:
        weights = load_foreign(name).read(path)
        files = weights.tokenizer_files if wants_tokenizer else {}
        vocabulary = vocabulary_of(files, weights.source)
        if vocabulary is not None:
            check_identity(vocabulary.identity, weights.config, name, False)
    except InputError as error:
        raise InputError(
            f"{error}\n`{path}` was recognized as {name}. `{convert_command(path)}` converts it "
            "separately and has more options."
        ) from error
    logger.info(
        "`%s` was recognized as %s and is converted while loading: %s; %s",
        path,
        name,
        model_line(weights.config),
        vocabulary.identity.sentence if vocabulary else "no vocabulary read",
    )
    tokenizer = vocabulary.tokenizer if vocabulary else None
    return ForeignWeights(name, ArrayTensors(weights.tensors), weights.config, tokenizer)
