"""Features cached on disk, under a hash of everything they depend on, so that none can be stale."""

import functools
import hashlib
import json
import logging
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sentencepiece

from data_pipeline.array_files import read_arrays, write_arrays
from data_pipeline.files import whole_file
from data_pipeline.tokenizers.tokenization import Tokenizer

_KEY = "cache_key"  # the name of an array in the file
_SOURCES = ("albert_keras/tasks", "data_pipeline")

logger = logging.getLogger(__name__)


def cached_features(
    folder: str | Path | None,
    name: str,
    examples: list,
    tokenizer: Tokenizer,
    settings: dict,
    build: Callable[[], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Returns features from the cache; builds and stores them if they are not in it.

    Older files remain; the folder can be deleted at any time.

    Args:
        folder: Is created if missing. None builds the features and stores nothing.
        name: What the features are, such as "text"; part of the file's name.
        examples: Named tuples of plain values. What `build` encodes.
        tokenizer: What `build` encodes with.
        settings: All else that `build` depends on, as plain values: lengths, label names.
        build: Returns arrays of numbers or text, no objects.
    """
    if folder is None:
        return build()
    key = features_key(name, examples, tokenizer, settings)
    path = Path(folder) / f"{name}-{key[:32]}.npz"
    if path.exists():
        try:
            return _read(path, key)
        except Exception as error:  # a damaged zip file may raise anything
            logger.warning("`%s` is damaged (%s): the features are built again.", path, error)
    features = build()
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, key, features)
    return features


def features_key(name: str, examples: list, tokenizer: Tokenizer, settings: dict) -> str:
    """Returns a hash, 64 hexadecimal digits, of all that features depend on.

    It changes with any example, the tokenizer, the settings, the code here and the versions of its
    dependencies. Arguments as in `cached_features`.
    """
    digest = hashlib.sha256()
    for part in (name, tokenizer.digest, settings, _code_version()):
        digest.update(_line(part))
    for example in examples:
        digest.update(_line([type(example).__name__, example]))
    return digest.hexdigest()


def _line(value):
    """Returns JSON without line breaks, in ASCII: a line cannot be mistaken for two."""
    return (json.dumps(value, sort_keys=True) + "\n").encode()


@functools.cache
def _code_version():
    """Returns a hash of the sources that build features; so there is no version to increment."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return [digest.hexdigest(), sentencepiece.__version__, unicodedata.unidata_version]


def _write(path, key, features):
    for name, values in features.items():
        if values.dtype.hasobject:
            raise ValueError(f"Features must be arrays of numbers or text. {name!r} is not.")
    with whole_file(path) as temporary:
        write_arrays(temporary, {**features, _KEY: np.array(key)})


def _read(path, key):
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()  # by checksum, before any header is trusted
    if damaged:
        raise ValueError(f"wrong checksum of `{damaged}`")
    arrays = read_arrays(path)
    if str(arrays.pop(_KEY)) != key:
        raise ValueError("it contains other features")
    return arrays
